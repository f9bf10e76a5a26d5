"""What slotqueue costs, each figure beside its target and, where there is one, beside the peer in the same run.

`python -m benchmarks` runs all, `python -m benchmarks burst idle` some. Nothing here is a test: a busy machine is slow.
"""
