def check_model(m): pass
