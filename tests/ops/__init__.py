"""Tests by op: each module tests the public names in its `COVERS`.

A package, so that modules may be named after the ops without hiding Python's own (`abs`, `range`).
"""
