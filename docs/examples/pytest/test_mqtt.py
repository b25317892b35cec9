"""What does quality of service 1 of MQTT do at 5 % loss, with paho-mqtt and the broker mosquitto?

A message of quality 1 is acknowledged, and sent again where its acknowledgement is missing when the client connects
anew. As long as a connection lasts, TCP repairs every loss: nothing arrives twice, nothing is missing, with either
quality. Quality 1 costs packets, and pays when connections break.
"""

import time
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

MESSAGES = 50
BROKER = ["mosquitto", "-c", str(Path(__file__).with_name("mosquitto.conf"))]
PATH = {"delay": "50ms", "loss": "5%", "seed": 1, "port": 1883}


def publish(address, port, quality):
    """Publishes to itself. Returns what arrived, how long each message took, and how often the client connected."""
    sent, times, arrived, connections = {}, [], [], []
    client = Client(CallbackAPIVersion.VERSION2)

    def on_message(_client, _data, message):
        arrived.append(int(message.payload))
        times.append(time.perf_counter() - sent[arrived[-1]])

    client.on_message = on_message
    client.on_connect = lambda *_: connections.append(client.subscribe("numbers", qos=quality))
    client.connect(address, port)
    client.loop_start()
    while not client.is_connected():
        time.sleep(0.01)
    time.sleep(5)
    for number in range(MESSAGES):
        sent[number] = time.perf_counter()
        client.publish("numbers", number, qos=quality)
        time.sleep(0.2)
    time.sleep(10)
    client.loop_stop()
    return {"times_s": times, "arrived": arrived, "connections": len(connections)}


def quality_0(address, port):
    return publish(address, port, 0)


def quality_1(address, port):
    return publish(address, port, 1)


def test_both_qualities_deliver_everything_once_and_1_costs_packets(net):
    plain = net.run(client=quality_0, server=BROKER, **PATH)
    sure = net.run(client=quality_1, server=BROKER, **PATH)
    for result in (plain, sure):
        assert result.drops["loss"] > 0
        assert result.value["arrived"] == list(range(MESSAGES))
        assert result.value["connections"] == 1
        assert max(result.value["times_s"]) > 0.3  # TCP's retransmissions are what takes time.
    assert sure.packets > plain.packets
