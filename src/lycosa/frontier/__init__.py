"""What comes next: known URLs, host queues with a bounded front in memory, politeness per host and per address."""
