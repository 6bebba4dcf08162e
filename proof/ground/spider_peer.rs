//! spider beside Lycosa: `spider-peer URL CONNECTIONS` follows all links of the URL's host and keeps nothing.

use spider::tokio;
use spider::website::Website;

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let url = words.next().expect("a URL");
    let connections = words.next().and_then(|word| word.parse().ok()).expect("a number of connections");
    let mut website = Website::new(&url);
    website
        .with_concurrency_limit(Some(connections))
        .with_respect_robots_txt(true)
        .with_delay(0)
        .with_depth(0)
        .with_limit(0)
        .with_danger_accept_invalid_certs(true); // the benchmark's own authority
    website.crawl_raw().await;
    println!("{}", website.get_links().len());
}
