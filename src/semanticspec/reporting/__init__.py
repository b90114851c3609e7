"""From run folders to tables and figures; works without torch, on a machine without the models."""
