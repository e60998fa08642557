package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// A tenant's share of the server, by its own connections and its own token.
type tenant struct {
	client *http.Client
	base   string
	token  string
}

func newTenant(cfg *rest.Config, token string) tenant {
	own := rest.AnonymousClientConfig(cfg)
	// Limits of the client's own would hide those of the server.
	own.QPS = -1
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	base := cfg.Host
	if i := strings.Index(base, "/clusters/"); i >= 0 {
		base = base[:i]
	}
	return tenant{client, base, token}
}

// send makes one request, without trying again, and reads all of the answer.
func (t tenant) send(ctx context.Context, method, path, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	res, err := t.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

func maps(cluster string) string {
	return "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps"
}

// setUpTenants lets the user of the quiet tenants, and the abuser, into their logical clusters, as
// the administrator.
func setUpTenants(cfg *rest.Config, quiet int) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	admin := newTenant(cfg, "")
	admin.client = client
	must := func(path, body string) {
		code, err := admin.send(context.Background(), "POST", path, body)
		if err != nil || code != http.StatusCreated {
			fmt.Println(path, code, err)
			os.Exit(1)
		}
	}
	let := func(cluster, user string) {
		must("/clusters/"+cluster+"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			`{"metadata":{"name":"all"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"`+user+`"}]}`)
	}
	for i := 0; i < quiet; i++ {
		let(fmt.Sprintf("quiet-%d", i), "quiet")
		must(maps(fmt.Sprintf("quiet-%d", i)), `{"metadata":{"name":"one"},"data":{"turn":"0"}}`)
	}
	let("abuser", "abuser")
	payload := strings.Repeat("x", *size)
	for i := 0; i < 2000; i++ {
		must(maps("abuser"), fmt.Sprintf(`{"metadata":{"name":"m%d"},"data":{"d":"%s"}}`, i, payload))
	}
}

// quietTenants work for a while, each at its own pace: a read or a write, and a pause.
func quietTenants(cfg *rest.Config, quiet int, label string) {
	t := newTenant(cfg, "token-of-quiet")
	ctx, cancel := context.WithTimeout(context.Background(), *duration)
	defer cancel()
	var mu sync.Mutex
	var reads, writes []time.Duration
	var failed atomic.Int64
	var wg sync.WaitGroup
	for i := 0; i < quiet; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			path := maps(fmt.Sprintf("quiet-%d", i)) + "/one"
			// They do not begin together: that would be a load of its own.
			time.Sleep(time.Duration(rand.Intn(750)) * time.Millisecond)
			for turn := 0; ctx.Err() == nil; turn++ {
				method, body := "GET", ""
				if turn%2 == 1 {
					method, body = "PUT", fmt.Sprintf(`{"metadata":{"name":"one"},"data":{"turn":"%d"}}`, turn)
				}
				// Whoever has begun is waited for.
				began := time.Now()
				code, err := t.send(context.Background(), method, path, body)
				taken := time.Since(began)
				if err != nil || code != http.StatusOK {
					failed.Add(1)
				}
				mu.Lock()
				if method == "GET" {
					reads = append(reads, taken)
				} else {
					writes = append(writes, taken)
				}
				mu.Unlock()
				time.Sleep(time.Duration(250+rand.Intn(500)) * time.Millisecond)
			}
		}()
	}
	wg.Wait()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	all := append(append([]time.Duration{}, reads...), writes...)
	fmt.Printf("%s read-p99-ms %.2f write-p99-ms %.2f p50-ms %.2f p99-ms %.2f requests %d failed %d\n",
		label, ms(pct(reads, .99)), ms(pct(writes, .99)), ms(pct(all, .5)), ms(pct(all, .99)), len(all), failed.Load())
}

// abuse asks without end, and without ever waiting: writes, lists of everything, and watches.
func abuse(cfg *rest.Config) {
	ctx, cancel := context.WithTimeout(context.Background(), *duration)
	defer cancel()
	var created, listed, watched, refused, failed atomic.Int64
	count := func(counter *atomic.Int64, code int, err error) {
		switch {
		case code == http.StatusTooManyRequests:
			refused.Add(1)
		case err != nil || code >= 300:
			failed.Add(1)
		default:
			counter.Add(1)
		}
	}
	payload := strings.Repeat("x", *size)
	var wg sync.WaitGroup
	worker := func(work func(t tenant)) {
		wg.Add(1)
		// Each has connections of its own, as an abuser would.
		t := newTenant(cfg, "token-of-abuser")
		t.client = &http.Client{Transport: cloned(t.client.Transport)}
		go func() {
			defer wg.Done()
			for ctx.Err() == nil {
				work(t)
			}
		}()
	}
	for i := 0; i < *c; i++ {
		worker(func(t tenant) {
			code, err := t.send(ctx, "POST", maps("abuser"), `{"metadata":{"generateName":"x-"},"data":{"d":"`+payload+`"}}`)
			count(&created, code, err)
		})
		worker(func(t tenant) {
			code, err := t.send(ctx, "GET", maps("abuser"), "")
			count(&listed, code, err)
		})
	}
	// Watches stay open to the end; what they are sent is read.
	for i := 0; i < 4; i++ {
		open := make(chan struct{}, 500)
		worker(func(t tenant) {
			select {
			case open <- struct{}{}:
			case <-ctx.Done():
				return
			}
			go func() {
				code, err := t.send(ctx, "GET", maps("abuser")+"?watch=1", "")
				if code == http.StatusTooManyRequests {
					<-open
				}
				if ctx.Err() != nil {
					err = nil
				}
				count(&watched, code, err)
			}()
		})
	}
	wg.Wait()
	fmt.Printf("abuser created %d listed %d watched %d refused %d failed %d\n",
		created.Load(), listed.Load(), watched.Load(), refused.Load(), failed.Load())
}

// cloned is a transport of the same settings with connections of its own.
func cloned(rt http.RoundTripper) http.RoundTripper {
	if t, ok := rt.(*http.Transport); ok {
		return t.Clone()
	}
	return rt
}
