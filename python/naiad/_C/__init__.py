"""``triton._C``: what scripts import from Triton's compiled part."""
