"""Cells of recurrent layers: LSTM, RNN and SVDF in floats and in integers."""
