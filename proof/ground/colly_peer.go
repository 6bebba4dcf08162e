// Colly beside Lycosa: `colly-peer URL CONNECTIONS` follows all links of the URL's host and keeps nothing.
package main

import (
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/gocolly/colly/v2"
)

func main() {
	start, err := url.Parse(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	connections, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	collector := colly.NewCollector(colly.AllowedDomains(start.Hostname()), colly.Async(true))
	collector.IgnoreRobotsTxt = false
	collector.MaxBodySize = 0
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = connections // Go's own default keeps two open
	collector.WithTransport(transport)
	if err := collector.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: connections}); err != nil {
		log.Fatal(err)
	}
	collector.OnHTML("a[href]", func(element *colly.HTMLElement) {
		// Colly takes two fragments of a page for two pages.
		href, _, _ := strings.Cut(element.Attr("href"), "#")
		if link := element.Request.AbsoluteURL(href); link != "" {
			_ = element.Request.Visit(link) // visited before, or on another host
		}
	})
	if err := collector.Visit(start.String()); err != nil {
		log.Fatal(err)
	}
	collector.Wait()
}
