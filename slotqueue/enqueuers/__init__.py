"""Adapters to worker systems: each puts messages on its queues and connects the guard to its workers."""
