"""The chain as data: configuration, keys, store, plan and execution."""
