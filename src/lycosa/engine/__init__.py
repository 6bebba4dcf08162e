"""One shard's crawl: the loop that joins frontier, mapping, fetch, web and store."""
