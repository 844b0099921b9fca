"""Names of Triton's tools that other code imports."""
