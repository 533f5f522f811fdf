# The extension: rust/py. What it does is told in the modules that use it; `make types` compares this file with it.
