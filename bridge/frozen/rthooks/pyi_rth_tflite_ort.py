"""Runs before the program: a process that `tflite_ort.base.own_process` started runs its module."""

import sys

from tflite_ort.base.own_process import MARK

if sys.argv[1:2] == [MARK]:
    del sys.argv[:2]  # the module is the name of the program now
    if sys.argv[0] == "tflite_ort.base.text_process":
        from tflite_ort.base.text_process import main
    elif sys.argv[0] == "tflite_ort.verification.litert_worker":
        from tflite_ort.verification.litert_worker import main
    elif sys.argv[0] == "tflite_ort.interpreter.device_trial":
        from tflite_ort.interpreter.device_trial import main
    else:
        raise SystemExit(f"{sys.argv[0]!r} is no process of tflite_ort")
    main()
    raise SystemExit
