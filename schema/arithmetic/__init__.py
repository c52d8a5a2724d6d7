"""TFLite's integer arithmetic, which translators and kernels share."""
