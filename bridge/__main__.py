"""``python -m tflite_ort`` is the command ``tflite-ort``."""

from tflite_ort.command.cli import main

if __name__ == "__main__":
    main()
