// Package crosswindtest runs a client and a server of a test on two hosts with an emulated path between them: in virtual
// time, without privileges, and with the same result every time.
//
// Both ends are the test's own binary, which `crosswind exec` starts once for each of them. So this file is all that a
// test needs beside the program crosswind.
package crosswindtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	endVariable  = "CROSSWIND_TEST_END"
	hostVariable = "CROSSWIND_TEST_HOST"
	portVariable = "CROSSWIND_TEST_PORT"
	nameVariable = "CROSSWIND_TEST_NAME"
	// Reports says where runs are kept with their reports; Skip, that tests are skipped where no path can be had.
	Reports = "CROSSWIND_REPORT"
	Skip    = "CROSSWIND_SKIP"
)

// notRun is crosswind's exit status where no path could be had.
const notRun = 125

// Path is what lies between client and server. All values are texts, as on the command line of `crosswind exec`.
type Path struct {
	Network, Delay, Loss, Rate, Queue string
	// Hops as "wifi rate=50mbit delay=2ms", Changes as "outage start=5s for=1s loss=100%", flows Beside the client as
	// "transfer --transport tcp".
	Hops, Changes, Beside []string
	// Clock is virtual unless it says real.
	Clock string
	// Timeout of the client: 10 minutes unless set.
	Timeout     string
	Repetitions int
	Seed        uint64
	// FailIf are conditions, as "p95(client_time) > 300ms". Each has to be shown not to hold; inconclusive fails too.
	FailIf []string
	// Settings are further ones, by their names in a study: {"forward_loss": "2%", "congestion_control": "bbr"}.
	Settings map[string]string
	// Environment names variables that client and server need: in virtual time they get none but PATH and HOME.
	Environment []string
	// Unchecked lets a client fail: Result.Status says how it ended.
	Unchecked bool
}

// Result is what came of a run. Counts are sums over repetitions.
type Result struct {
	// Status is the client's exit status, of several repetitions the first that is not 0; 124 at its timeout.
	Status int `json:"exit_status"`
	Clock  string
	Seed   uint64
	// Repetitions, each with its own time, value and counts.
	Repetitions []Repetition
	Packets     int
	Bytes       int
	// Drops are packets that the path dropped, by cause.
	Drops map[string]int
	// Retransmissions are TCP segments that both hosts' kernels sent again.
	Retransmissions int
	// Directory is where the run is kept while the test runs; with CROSSWIND_REPORT, for longer.
	Directory string
}

// Repetition is one run of client and server.
type Repetition struct {
	Status   int  `json:"exit_status"`
	TimedOut bool `json:"timed_out"`
	// Time is from starting the client to its end, on the path's clock; 0 where it did not end by itself.
	Time           time.Duration `json:"time_ns"`
	Forward        Direction
	Reverse        Direction
	TCPRetransmits struct{ Client, Server int } `json:"tcp_retransmits"`
	Valid          bool
	Reasons        []string
	Warnings       []struct{ Text string }
	// Value is what the client returned, as JSON; Output and Errors what it printed.
	Value          json.RawMessage `json:"-"`
	Output, Errors string          `json:"-"`
	Key            string
}

// Direction is what the path did with the packets of one host.
type Direction struct {
	Packets        int
	Bytes          int
	Delivered      int
	DeliveredBytes int            `json:"delivered_bytes"`
	Drops          map[string]int `json:"dropped"`
}

// Times is what a client may return: how long each of its exchanges took. They become the metric client_time.
type Times []time.Duration

// MarshalJSON is what Crosswind reads of a client.
func (times Times) MarshalJSON() ([]byte, error) {
	seconds := make([]float64, len(times))
	for i, each := range times {
		seconds[i] = each.Seconds()
	}
	return json.Marshal(map[string]any{"times_s": seconds})
}

var running sync.Map

// Run runs a client, and a server on another host, with a path between them. Each gets the server's address, as
// "198.18.0.2:8000". The client starts once the server listens; its end is the server's. Without a server, the host only
// answers pings. A test runs one path; several are subtests. What the client returns is Value, as JSON.
func Run(t *testing.T, path Path, server func(t *testing.T, address string), client func(t *testing.T, address string) any) *Result {
	t.Helper()
	if end := os.Getenv(endVariable); end != "" {
		runEnd(t, end, server, client)
	}
	if _, again := running.LoadOrStore(t.Name(), true); again {
		t.Fatalf("%s runs a second path\nhint: make each of them a subtest", t.Name())
	}
	t.Cleanup(func() { running.Delete(t.Name()) })
	directory := filepath.Join(t.TempDir(), "run")
	if kept := os.Getenv(Reports); kept != "" {
		directory = filepath.Join(kept, filepath.FromSlash(t.Name()))
		if _, err := os.Stat(filepath.Join(directory, "manifest.json")); err == nil {
			os.RemoveAll(directory) // Of an earlier run.
		}
		if err := os.MkdirAll(filepath.Dir(directory), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	status, _, printed := crosswind(t, arguments(t, path, directory, server != nil)...)
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	result := &Result{Directory: directory, Drops: map[string]int{}}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), result); err != nil || len(result.Repetitions) == 0 {
		if status == notRun && os.Getenv(Skip) != "" {
			t.Skip(printed)
		}
		t.Fatalf("crosswind ended with exit status %d\n%s%s", status, printed, serverErrors(directory))
	}
	result.add(directory)
	for _, each := range result.Repetitions {
		for _, text := range each.Reasons {
			t.Logf("%s: not valid: %s", each.Key, text)
		}
		for _, warning := range each.Warnings {
			t.Logf("%s: %s", each.Key, warning.Text)
		}
	}
	if result.Status != 0 && !path.Unchecked {
		t.Fatal(whyFailed(result))
	}
	if len(path.FailIf) > 0 || os.Getenv(Reports) != "" {
		judge(t, path, directory)
	}
	return result
}

// runEnd is the test inside the path, as one of its ends. It does not return.
func runEnd(t *testing.T, end string, server func(*testing.T, string), client func(*testing.T, string) any) {
	if os.Getenv(nameVariable) != hex(t.Name()) {
		t.Fatalf("%s runs a path, and so does a subtest of it\nhint: make each of them a subtest", t.Name())
	}
	address := net.JoinHostPort(os.Getenv(hostVariable), os.Getenv(portVariable))
	var value any
	if end == "server" {
		server(t, address)
	} else {
		value = client(t, address)
	}
	if t.Failed() {
		t.FailNow()
	}
	// What comes after the path is not this process's, and the testing package would print below the value.
	if end == "client" {
		line, err := json.Marshal(value)
		if err != nil {
			t.Fatalf("the client returned %v: %v", value, err)
		}
		fmt.Println(string(line))
	}
	os.Exit(0)
}

func arguments(t *testing.T, path Path, directory string, hasServer bool) []string {
	if path.Clock == "" {
		path.Clock = "virtual"
	}
	words := []string{"exec", "--json", "--output", directory}
	option := func(name, value string) {
		if value != "" {
			words = append(words, "--"+strings.ReplaceAll(name, "_", "-"), value)
		}
	}
	option("network", path.Network)
	option("delay", path.Delay)
	option("loss", path.Loss)
	option("rate", path.Rate)
	option("queue", path.Queue)
	option("clock", path.Clock)
	option("timeout", path.Timeout)
	for name, value := range path.Settings {
		option(name, value)
	}
	for option, values := range map[string][]string{"--hop": path.Hops, "--at": path.Changes, "--beside": path.Beside} {
		for _, value := range values {
			words = append(words, option, value)
		}
	}
	if path.Repetitions > 0 {
		words = append(words, "--repetitions", strconv.Itoa(path.Repetitions))
	}
	if path.Seed > 0 {
		words = append(words, "--seed", strconv.FormatUint(path.Seed, 10))
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.MustCompile(`[^\pL\pN_ -]`).ReplaceAllString(part, ".") + "$"
	}
	test := []string{own, "-test.run=" + strings.Join(parts, "/"), "-test.count=1"}
	end := func(which string) []string {
		set := []string{"env", endVariable + "=" + which, nameVariable + "=" + hex(t.Name()), hostVariable + "={address}"}
		if hasServer {
			set = append(set, portVariable+"={port}")
		}
		for _, name := range path.Environment {
			set = append(set, name+"="+os.Getenv(name))
		}
		return append(set, test...)
	}
	if hasServer {
		quoted := end("server")
		for i, word := range quoted {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
		}
		words = append(words, "--server", strings.Join(quoted, " "))
	}
	return append(append(words, "--"), end("client")...)
}

// crosswind runs a command. Returns: its exit status, and what it printed on standard output and standard error.
func crosswind(t *testing.T, arguments ...string) (int, string, string) {
	t.Helper()
	command := exec.Command("crosswind", arguments...)
	var output, errs bytes.Buffer
	command.Stdout, command.Stderr = &output, &errs
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		if os.Getenv(Skip) != "" {
			t.Skip(err)
		}
		t.Fatalf("%v\nhint: install Crosswind, so that `crosswind doctor` answers", err)
	}
	return command.ProcessState.ExitCode(), output.String(), errs.String()
}

// hex is a name without braces, which would be placeholders of Crosswind.
func hex(name string) string { return fmt.Sprintf("%x", name) }

// judge fails the test unless every condition passes, and writes the report of a run that is kept.
func judge(t *testing.T, path Path, directory string) {
	t.Helper()
	words := []string{"report", directory, "--json"}
	if os.Getenv(Reports) != "" {
		words = append(words, "--html", filepath.Join(directory, "report.html"))
	}
	for _, condition := range path.FailIf {
		words = append(words, "--fail-if", condition)
	}
	_, printed, errs := crosswind(t, words...)
	var report struct {
		Thresholds []struct{ Verdict, Sentence string }
	}
	if err := json.Unmarshal([]byte(printed), &report); err != nil || len(report.Thresholds) != len(path.FailIf) {
		t.Fatalf("crosswind report: %s", errs)
	}
	for _, each := range report.Thresholds {
		if each.Verdict != "pass" {
			t.Error(each.Sentence)
		}
	}
}

// add fills in sums, and what the run's directory has.
func (result *Result) add(directory string) {
	for i := range result.Repetitions {
		each := &result.Repetitions[i]
		for _, way := range []Direction{each.Forward, each.Reverse} {
			result.Packets += way.Packets
			result.Bytes += way.Bytes
			for cause, number := range way.Drops {
				result.Drops[cause] += number
			}
		}
		result.Retransmissions += each.TCPRetransmits.Client + each.TCPRetransmits.Server
		place := filepath.Join(directory, "cells", each.Key)
		output, _ := os.ReadFile(filepath.Join(place, "client.out"))
		errs, _ := os.ReadFile(filepath.Join(place, "client.err"))
		each.Output, each.Errors = string(output), string(errs)
		if each.Status == 0 {
			text := strings.TrimSuffix(each.Output, "\n")
			at := strings.LastIndexByte(text, '\n') + 1
			each.Output, each.Value = text[:at], json.RawMessage(text[at:])
		}
	}
}

func whyFailed(result *Result) string {
	for _, each := range result.Repetitions {
		if each.TimedOut {
			return "the client was ended at its timeout\n" + each.Output + each.Errors
		}
		if each.Status != 0 {
			return fmt.Sprintf("the client ended with exit status %d\n%s%s", each.Status, each.Output, each.Errors)
		}
	}
	return ""
}

func serverErrors(directory string) string {
	var found strings.Builder
	for _, pattern := range []string{"server.out", "server.err"} {
		files, _ := fs.Glob(os.DirFS(directory), "cells/*/"+pattern)
		for _, file := range files {
			text, _ := os.ReadFile(filepath.Join(directory, file))
			found.Write(text)
		}
	}
	return found.String()
}
