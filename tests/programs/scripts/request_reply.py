"""Questions on one topic, answers on another."""

import os
import threading

import pulsar

URL = os.environ.get("PULSAR_URL", "pulsar://localhost:6650")
ready = threading.Event()


def serve():
    client = pulsar.Client(URL)
    questions = client.subscribe("questions", "calculator")
    ready.set()
    for _ in range(4):
        question = questions.receive(timeout_millis=10000)
        answers = client.create_producer(question.properties()["reply-to"])
        text = question.data().decode()
        answer = str(sum(int(part) for part in text.split("+")))
        answers.send(answer.encode(), properties={"id": question.properties()["id"]})
        answers.close()
        questions.acknowledge(question)
    client.close()


server = threading.Thread(target=serve)
server.start()
ready.wait(30)
client = pulsar.Client(URL)
answers = client.subscribe("answers-to-me", "me")
producer = client.create_producer("questions")
for number in range(4):
    producer.send(b"%d+1" % number, properties={"id": str(number), "reply-to": "answers-to-me"})
for _ in range(4):
    message = answers.receive(timeout_millis=10000)
    print(message.properties()["id"], message.data().decode())
    answers.acknowledge(message)
server.join()
client.close()
