package crosswindtest

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

// echo answers every line with itself.
func echo(t *testing.T, address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(connection); lines.Scan(); {
			fmt.Fprintln(connection, lines.Text())
		}
	}
}

// ask sends lines one after another. Returns how long each answer took.
func ask(t *testing.T, address string) any {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var times Times
	answers := bufio.NewReader(connection)
	for range make([]int, 20) {
		begun := time.Now()
		fmt.Fprintln(connection, "hello")
		if answer, err := answers.ReadString('\n'); err != nil || answer != "hello\n" {
			t.Fatal(answer, err)
		}
		times = append(times, time.Since(begun))
	}
	return times
}

func TestAnswersTakeOneRoundTrip(t *testing.T) {
	result := Run(t, Path{Delay: "20ms", Repetitions: 6, FailIf: []string{"median(client_time) > 41ms"}}, echo, ask)
	// A handshake and twenty answers.
	if whole := result.Repetitions[0].Time.Round(time.Millisecond); whole != 840*time.Millisecond {
		t.Errorf("the client took %v", whole)
	}
}

func TestNothingIsLostForGood(t *testing.T) {
	for _, loss := range []string{"0%", "10%"} {
		t.Run(loss, func(t *testing.T) {
			result := Run(t, Path{Network: "4g", Loss: loss}, echo, ask)
			if lost := result.Drops["loss"]; (lost > 0) != (loss == "10%") {
				t.Errorf("%d packets were lost", lost)
			}
		})
	}
}

func TestAFailureOnThePathFailsTheTest(t *testing.T) {
	result := Run(t, Path{Delay: "20ms", Unchecked: true}, echo, func(t *testing.T, address string) any {
		t.Errorf("this client complains of %s", address)
		return nil
	})
	if result.Status != 1 {
		t.Errorf("exit status %d", result.Status)
	}
}
