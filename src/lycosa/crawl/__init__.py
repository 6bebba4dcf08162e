"""The crawl of one shard: lease, resolve, fetch, read, admit, commit. `loop` shows the life of a URL."""
