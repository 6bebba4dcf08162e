"""The command `lycosa` without SimHashes, for what a crawl costs without them: python without_simhash.py WORDS…"""

from lycosa.cli import main
from lycosa.crawl.reading import PageReader

if __name__ == "__main__":
    PageReader.wants_simhash = False
    main()
