"""Execution providers: sessions, delegates, and what providers compute wrongly."""

import os

# From 1.29 on ONNX Runtime keeps what it runs in a database in the user's folder for caches and
# sends it to Microsoft, unless this is set before its import. Whoever wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
