package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

// arrived counts messages: what ends this server, if it is to end in the middle.
var arrived atomic.Int64

func count(given options) {
	if arrived.Add(1) == int64(given.KillAfter) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// serve echoes until standard input closes.
func serve(given options) error {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	switch given.Transport {
	case "quic", "quic-datagram":
		settings, err := serverTLS(given, alpn)
		if err != nil {
			return err
		}
		listener, err := quic.Listen(socket, settings, quicConfig())
		if err != nil {
			return err
		}
		go func() { failed <- serveQUIC(given, listener) }()
	case "http3", "webtransport", "webtransport-datagram":
		settings, err := serverTLS(given, http3.NextProtoH3)
		if err != nil {
			return err
		}
		server := webtransportServer(given)
		server.H3.TLSConfig = settings
		go func() { failed <- server.Serve(socket) }()
	default:
		return fmt.Errorf("no transport %q here", given.Transport)
	}
	say(map[string]any{"address": socket.LocalAddr().String()})
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case err := <-failed:
		return err
	}
}

func serveQUIC(given options, listener *quic.Listener) error {
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go echoDatagrams(given, connection)
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					report(err)
					return
				}
				go echoStream(given, stream)
			}
		}()
	}
}

// report says how a connection ended.
func report(err error) {
	fields := map[string]any{"event": "closed", "how": fmt.Sprintf("%T", err)}
	var application *quic.ApplicationError
	var session *webtransport.SessionError
	switch {
	case asError(err, &application):
		fields["code"] = uint64(application.ErrorCode)
	case asError(err, &session):
		fields["code"] = uint64(session.ErrorCode)
	}
	say(fields)
}

func echoStream(given options, stream io.ReadWriteCloser) {
	buffer := make([]byte, 65536)
	for {
		size, err := stream.Read(buffer)
		if size > 0 {
			count(given)
			if _, err := stream.Write(buffer[:size]); err != nil {
				return
			}
		}
		if err != nil {
			_ = stream.Close()
			return
		}
	}
}

type datagrams interface {
	SendDatagram([]byte) error
	ReceiveDatagram(context.Context) ([]byte, error)
}

func echoDatagrams(given options, connection datagrams) {
	for {
		datagram, err := connection.ReceiveDatagram(context.Background())
		if err != nil {
			return
		}
		count(given)
		if err := connection.SendDatagram(datagram); err != nil {
			say(map[string]any{"event": "datagram not sent", "how": err.Error()})
		}
	}
}

func webtransportServer(given options) *webtransport.Server {
	routes := http.NewServeMux()
	server := &webtransport.Server{
		H3:          &http3.Server{Handler: routes, QUICConfig: quicConfig()},
		CheckOrigin: func(*http.Request) bool { return true },
	}
	webtransport.ConfigureHTTP3Server(server.H3)
	routes.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodConnect {
			session, err := server.Upgrade(answer, request)
			if err != nil {
				say(map[string]any{"event": "refused", "how": err.Error()})
				answer.WriteHeader(http.StatusBadRequest)
				return
			}
			echoSession(given, session)
			return
		}
		serveHTTP(given, answer, request)
	})
	return server
}

func echoSession(given options, session *webtransport.Session) {
	go echoDatagrams(given, session)
	for {
		stream, err := session.AcceptStream(context.Background())
		if err != nil {
			report(err)
			return
		}
		go echoStream(given, stream)
	}
}

// serveHTTP answers POST with the body that came and GET /bytes/N with N bytes.
func serveHTTP(given options, answer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	count(given)
	if request.Method == http.MethodGet {
		size, err := strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/bytes/"))
		if err != nil {
			answer.WriteHeader(http.StatusNotFound)
			return
		}
		body = message(size, "binary")
	}
	answer.Header().Set("Content-Type", "application/octet-stream")
	answer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = io.Copy(answer, bytes.NewReader(body))
}
