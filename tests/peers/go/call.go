package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

func asError[T error](err error, into *T) bool { return errors.As(err, into) }

// An exchange sends one message and returns what came back.
type exchange func(ctx context.Context, sent []byte) ([]byte, error)

// call sends a message of each size and checks what comes back.
func call(given options) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	send, sendHalf, end, err := connect(ctx, given)
	if err != nil {
		say(map[string]any{"event": "closed", "outcome": outcome(err), "how": err.Error()})
		return nil
	}
	for _, size := range given.Sizes {
		sent := message(size, given.Payload)
		received, err := send(ctx, sent)
		word := outcome(err)
		if err == nil && !bytes.Equal(sent, received) {
			word = "different"
		}
		say(map[string]any{"size": size, "outcome": word, "received": len(received)})
	}
	if given.End == "killed" {
		if err := sendHalf(ctx); err != nil {
			return err
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	say(map[string]any{"event": "closed", "outcome": outcome(end())})
	return nil
}

// connect returns how to exchange a message, how to send half of one, and how to close.
func connect(ctx context.Context, given options) (exchange, func(context.Context) error, func() error, error) {
	switch given.Transport {
	case "quic", "quic-datagram":
		settings, err := clientTLS(given, alpn)
		if err != nil {
			return nil, nil, nil, err
		}
		connection, err := quic.DialAddr(ctx, given.Address, settings, quicConfig())
		if err != nil {
			return nil, nil, nil, err
		}
		open := func(ctx context.Context) (stream, error) { return connection.OpenStreamSync(ctx) }
		end := func() error { return connection.CloseWithError(0, "done") }
		return messages(given, connection, open), half(open), end, nil
	case "webtransport", "webtransport-datagram":
		settings, err := clientTLS(given, http3.NextProtoH3)
		if err != nil {
			return nil, nil, nil, err
		}
		dialer := &webtransport.Transport{
			TLSClientConfig: settings,
			QUICConfig:      quicConfig(),
			DialAddr: func(ctx context.Context, _ string, settings *tls.Config, config *quic.Config) (*quic.Conn, error) {
				return quic.DialAddrEarly(ctx, given.Address, settings, config)
			},
		}
		_, session, err := dialer.Dial(ctx, "https://"+given.ServerName+port(given)+given.Path, nil)
		if err != nil {
			return nil, nil, nil, err
		}
		open := func(ctx context.Context) (stream, error) { return session.OpenStreamSync(ctx) }
		end := func() error {
			err := session.CloseWithError(0, "done")
			return errors.Join(err, dialer.Close())
		}
		return messages(given, session, open), half(open), end, nil
	case "http3":
		return requests(given)
	}
	return nil, nil, nil, fmt.Errorf("no transport %q here", given.Transport)
}

type stream interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

// messages are exchanged in datagrams, on one stream, or on a stream each.
func messages(given options, connection datagrams, open func(context.Context) (stream, error)) exchange {
	if strings.HasSuffix(given.Transport, "-datagram") {
		return func(ctx context.Context, sent []byte) ([]byte, error) {
			if err := connection.SendDatagram(sent); err != nil {
				return nil, err
			}
			return connection.ReceiveDatagram(ctx)
		}
	}
	var kept stream
	return func(ctx context.Context, sent []byte) ([]byte, error) {
		on := kept
		if on == nil {
			opened, err := open(ctx)
			if err != nil {
				return nil, err
			}
			on = opened
		}
		limit, _ := ctx.Deadline()
		if err := on.SetDeadline(limit); err != nil {
			return nil, err
		}
		// A server that echoes while it reads may stop reading until it is read from.
		written := make(chan error, 1)
		go func() {
			_, err := on.Write(sent)
			if err == nil && !given.Kept {
				err = on.Close()
			}
			written <- err
		}()
		if given.Kept {
			kept = on
			received := make([]byte, len(sent))
			_, err := io.ReadFull(on, received)
			return received, errors.Join(err, <-written)
		}
		received, err := io.ReadAll(on)
		return received, errors.Join(err, <-written)
	}
}

// half leaves a stream open that has carried something.
func half(open func(context.Context) (stream, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		on, err := open(ctx)
		if err == nil {
			_, err = on.Write([]byte("half"))
		}
		return err
	}
}

func port(given options) string { return given.Address[strings.LastIndex(given.Address, ":"):] }

// requests are POST with the message as their body, or GET, which only receives.
func requests(given options) (exchange, func(context.Context) error, func() error, error) {
	settings, err := clientTLS(given, http3.NextProtoH3)
	if err != nil {
		return nil, nil, nil, err
	}
	transport := &http3.Transport{
		TLSClientConfig: settings,
		QUICConfig:      quicConfig(),
		Dial: func(ctx context.Context, _ string, settings *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return quic.DialAddrEarly(ctx, given.Address, settings, config)
		},
	}
	client := &http.Client{Transport: transport}
	send := func(ctx context.Context, sent []byte) ([]byte, error) {
		url, body := "https://"+given.ServerName+port(given)+given.Path, io.Reader(bytes.NewReader(sent))
		if given.Method == http.MethodGet {
			url, body = fmt.Sprintf("https://%s%s/bytes/%d", given.ServerName, port(given), len(sent)), nil
		}
		request, err := http.NewRequestWithContext(ctx, given.Method, url, body)
		if err != nil {
			return nil, err
		}
		answer, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		received, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", answer.StatusCode)
		}
		if err == nil && given.Method == http.MethodGet && len(received) == len(sent) {
			return sent, nil // what the bytes are is the server's to choose
		}
		return received, err
	}
	sendHalf := func(ctx context.Context) error {
		reader, writer := io.Pipe()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+given.ServerName+port(given)+given.Path, reader)
		if err != nil {
			return err
		}
		go func() { _, _ = client.Do(request) }()
		_, err = writer.Write([]byte("half"))
		return err
	}
	return send, sendHalf, transport.Close, nil
}
