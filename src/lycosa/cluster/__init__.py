"""Many shards of one crawl: who owns which part of the web, how URLs travel to their owner, who joins and who is gone.

One shard is the engine that crawls on one machine. `assignment`, `places`, `letters` and `crossing` do no I/O and read
no clock; the modules that import Ray say so on top.
"""
