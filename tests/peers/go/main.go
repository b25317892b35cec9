// Peers that speak QUIC, HTTP/3 and WebTransport, from quic-go and webtransport-go.
//
//	peers serve '{"transport": "quic", "certificate_path": "...", "key_path": "..."}'
//	peers call '{"transport": "quic", "address": "127.0.0.1:4433", "trust_path": "...", "sizes": [0, 1]}'
//
// A server prints {"address": ...} and echoes until its standard input closes. A client prints a line for each message and one
// with the event "closed".
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// ALPN of Crosswind's transport "quic".
const alpn = "crosswind"

// No wait of a peer is longer.
const deadline = 20 * time.Second

type options struct {
	Transport       string `json:"transport"`
	Address         string `json:"address"`
	ServerName      string `json:"server_name"`
	Path            string `json:"path"`
	Method          string `json:"method"`
	TrustPath       string `json:"trust_path"`
	CertificatePath string `json:"certificate_path"`
	KeyPath         string `json:"key_path"`
	Sizes           []int  `json:"sizes"`
	Payload         string `json:"payload"`
	// All messages on one stream, instead of a stream for each.
	Kept bool `json:"kept"`
	// After the messages: "orderly" or "killed", in the middle of one more.
	End string `json:"end"`
	// A server ends itself with SIGKILL when this many messages have come.
	KillAfter int `json:"kill_after"`
}

var printing sync.Mutex

// say prints one JSON line.
func say(fields map[string]any) {
	printing.Lock()
	defer printing.Unlock()
	line, _ := json.Marshal(fields)
	fmt.Println(string(line))
}

// message is `size` bytes, and valid UTF-8 beyond ASCII if it is text.
func message(size int, payload string) []byte {
	if payload != "text" {
		bytes := make([]byte, size)
		for place := range bytes {
			bytes[place] = byte(place*31 + 7)
		}
		return bytes
	}
	pattern := "é世🙂"
	text := strings.Repeat(pattern, size/len(pattern))
	return []byte(text + strings.Repeat("x", size-len(text)))
}

// quicConfig bounds every wait, and allows datagrams.
func quicConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:             deadline / 2,
		MaxIdleTimeout:                   deadline,
		EnableDatagrams:                  true,
		EnableStreamResetPartialDelivery: true,
	}
}

func clientTLS(given options, protocols ...string) (*tls.Config, error) {
	pem, err := os.ReadFile(given.TrustPath)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", given.TrustPath)
	}
	return &tls.Config{RootCAs: roots, ServerName: given.ServerName, NextProtos: protocols}, nil
}

func serverTLS(given options, protocols ...string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(given.CertificatePath, given.KeyPath)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: protocols}, nil
}

// outcome names what became of a message in the words that Crosswind uses.
func outcome(err error) string {
	var unknown x509.UnknownAuthorityError
	switch {
	case err == nil:
		return "ok"
	case asError(err, &unknown), strings.Contains(err.Error(), "certificate"):
		return "certificate"
	case strings.Contains(err.Error(), context.DeadlineExceeded.Error()), strings.Contains(err.Error(), "timeout"):
		return "timeout"
	default:
		return err.Error()
	}
}

func main() {
	if len(os.Args) != 3 || (os.Args[1] != "serve" && os.Args[1] != "call") {
		fmt.Fprintln(os.Stderr, "usage: peers serve|call JSON")
		os.Exit(2)
	}
	given := options{ServerName: "localhost", Path: "/", Method: "POST", End: "orderly"}
	decoder := json.NewDecoder(strings.NewReader(os.Args[2]))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&given)
	if err == nil {
		if os.Args[1] == "serve" {
			err = serve(given)
		} else {
			err = call(given)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
