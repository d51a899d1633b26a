// Does one thing with the official Go client: `official URL CHECK [token] [certificates]`.
// Exit status 0: what it says holds. Else the reason is on standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const patience = 60 * time.Second

var checks = map[string]func(pulsar.Client){
	"types":               types,
	"batches":             batches,
	"keys":                keys,
	"compression":         compression,
	"chunks":              chunks,
	"cumulative":          cumulative,
	"batch-index":         batchIndex,
	"acknowledge-answers": acknowledgeAnswers,
	"negative":            negative,
	"dead-letters":        deadLetters,
	"retry-letters":       retryLetters,
	"seek":                seek,
	"partitions":          partitions,
	"pattern":             pattern,
	"several-topics":      severalTopics,
	"schemas":             schemas,
	"readers":             readers,
	"table-view":          tableView,
	"events":              events,
	"non-persistent":      nonPersistent,
	"exclusive-producer":  exclusiveProducer,
	"delayed":             delayed,
	"zero-queue":          zeroQueue,
	"unsubscribe":         unsubscribe,
	"transactions":        transactions,
	"produce-and-consume": produceAndConsume,
	"terminated":          terminated,
}

func main() {
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	options := pulsar.ClientOptions{
		URL:               os.Args[1],
		OperationTimeout:  patience,
		ConnectionTimeout: patience,
		Logger:            plog.NewLoggerWithLogrus(log),
	}
	if len(os.Args) > 3 && os.Args[3] != "" {
		options.Authentication = pulsar.NewAuthenticationToken(os.Args[3])
	}
	if len(os.Args) > 4 {
		options.TLSTrustCertsFilePath = os.Args[4]
		options.TLSValidateHostname = true
	}
	options.EnableTransaction = strings.HasPrefix(os.Args[2], "transactions")
	client, err := pulsar.NewClient(options)
	if os.Args[2] == "transactions-off" {
		if err == nil {
			fail("a client with transactions was opened")
		}
		return
	}
	if os.Args[2] == "forbidden" {
		must(err)
		_, err = client.CreateProducer(pulsar.ProducerOptions{Topic: "t"})
		if err == nil || !strings.Contains(err.Error(), "uth") {
			fail("made a producer: %v", err)
		}
		return
	}
	must(err)
	check, ok := checks[os.Args[2]]
	if !ok {
		fail("no check %s", os.Args[2])
	}
	check(client)
	client.Close()
}

func fail(text string, values ...any) {
	panic(fmt.Sprintf(text, values...))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func limited() context.Context {
	found, _ := context.WithTimeout(context.Background(), patience)
	return found
}

func produce(client pulsar.Client, options pulsar.ProducerOptions) pulsar.Producer {
	producer, err := client.CreateProducer(options)
	must(err)
	return producer
}

func subscribe(client pulsar.Client, options pulsar.ConsumerOptions) pulsar.Consumer {
	options.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	if options.SubscriptionName == "" {
		options.SubscriptionName = "s"
	}
	consumer, err := client.Subscribe(options)
	must(err)
	return consumer
}

func send(producer pulsar.Producer, messages ...string) []pulsar.MessageID {
	var found []pulsar.MessageID
	for _, each := range messages {
		id, err := producer.Send(limited(), &pulsar.ProducerMessage{Payload: []byte(each)})
		must(err)
		found = append(found, id)
	}
	return found
}

func sendAll(producer pulsar.Producer, messages []*pulsar.ProducerMessage) {
	var waiting sync.WaitGroup
	for _, each := range messages {
		waiting.Add(1)
		producer.SendAsync(context.Background(), each, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			must(err)
			waiting.Done()
		})
	}
	must(producer.Flush())
	waiting.Wait()
}

func numbered(count int) []*pulsar.ProducerMessage {
	var found []*pulsar.ProducerMessage
	for number := 0; number < count; number++ {
		found = append(found, &pulsar.ProducerMessage{Payload: []byte(fmt.Sprint(number))})
	}
	return found
}

func receive(consumer pulsar.Consumer) pulsar.Message {
	message, err := consumer.Receive(limited())
	must(err)
	return message
}

func take(consumer pulsar.Consumer, expected ...string) []pulsar.Message {
	var found []pulsar.Message
	for _, each := range expected {
		message := receive(consumer)
		if string(message.Payload()) != each {
			fail("received %s, expected %s", message.Payload(), each)
		}
		found = append(found, message)
	}
	return found
}

// nothing: says that nothing waits, by what is sent then and comes next.
func nothing(consumer pulsar.Consumer, producer pulsar.Producer) {
	send(producer, "marker")
	must(consumer.Ack(take(consumer, "marker")[0]))
}

func types(client pulsar.Client) {
	kinds := []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared, pulsar.Failover, pulsar.KeyShared}
	for number, kind := range kinds {
		topic := fmt.Sprintf("types-%d", number)
		producer := produce(client, pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
		options := pulsar.ConsumerOptions{Topic: topic, Type: kind}
		consumer := subscribe(client, options)
		send(producer, "a", "b", "c")
		for _, each := range take(consumer, "a", "b") {
			must(consumer.Ack(each))
		}
		consumer.Close()
		again := subscribe(client, options)
		must(again.Ack(take(again, "c")[0]))
		nothing(again, producer)
		if kind == pulsar.Exclusive {
			_, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
			if err == nil || !strings.Contains(err.Error(), "ConsumerBusy") {
				fail("a second exclusive consumer: %v", err)
			}
		}
	}
}

func produceAndConsume(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "t"})
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "t"})
	send(producer, "a")
	must(consumer.Ack(take(consumer, "a")[0]))
}

func batches(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "batches", BatchingMaxMessages: 100})
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "batches"})
	var messages []*pulsar.ProducerMessage
	for number := 0; number < 1000; number++ {
		messages = append(messages, &pulsar.ProducerMessage{
			Payload:    []byte(fmt.Sprint(number)),
			Properties: map[string]string{"number": fmt.Sprint(number)},
			EventTime:  time.UnixMilli(int64(number + 1)),
		})
	}
	sendAll(producer, messages)
	batched := false
	for number := 0; number < 1000; number++ {
		message := take(consumer, fmt.Sprint(number))[0]
		if message.Properties()["number"] != fmt.Sprint(number) || message.EventTime().UnixMilli() != int64(number+1) {
			fail("message %d has %v", number, message.Properties())
		}
		batched = batched || message.ID().BatchIdx() > 0
		must(consumer.Ack(message))
	}
	if !batched {
		fail("nothing came in batches")
	}
}

func keys(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "keys", BatcherBuilderType: pulsar.KeyBasedBatchBuilder})
	first := subscribe(client, pulsar.ConsumerOptions{Topic: "keys", Type: pulsar.KeyShared, Name: "a"})
	second := subscribe(client, pulsar.ConsumerOptions{Topic: "keys", Type: pulsar.KeyShared, Name: "b"})
	var messages []*pulsar.ProducerMessage
	for number := 0; number < 400; number++ {
		key := fmt.Sprint("k", number%20)
		messages = append(messages, &pulsar.ProducerMessage{Key: key, Payload: []byte(fmt.Sprint(number))})
	}
	sendAll(producer, messages)
	owner := map[string]string{}
	last := map[string]int{}
	for received := 0; received < 400; received++ {
		var message pulsar.Message
		var name string
		var consumer pulsar.Consumer
		select {
		case each := <-first.Chan():
			message, name, consumer = each.Message, "a", first
		case each := <-second.Chan():
			message, name, consumer = each.Message, "b", second
		case <-time.After(patience):
			fail("%d messages came", received)
		}
		if before, ok := owner[message.Key()]; ok && before != name {
			fail("key %s went to both", message.Key())
		}
		owner[message.Key()] = name
		var number int
		fmt.Sscan(string(message.Payload()), &number)
		if before, ok := last[message.Key()]; ok && before >= number {
			fail("key %s out of order", message.Key())
		}
		last[message.Key()] = number
		must(consumer.Ack(message))
	}
	if len(owner) != 20 {
		fail("%d keys came", len(owner))
	}
}

func compression(client pulsar.Client) {
	kinds := []pulsar.CompressionType{pulsar.LZ4, pulsar.ZLib, pulsar.ZSTD, pulsar.SNAPPY}
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "compression"})
	text := strings.Repeat("compressible ", 1000)
	for _, kind := range kinds {
		for _, single := range []bool{true, false} {
			producer := produce(client, pulsar.ProducerOptions{
				Topic: "compression", CompressionType: kind, DisableBatching: single,
			})
			for _, each := range []string{text, "a"} {
				send(producer, each)
				must(consumer.Ack(take(consumer, each)[0]))
			}
			producer.Close()
		}
	}
}

func chunks(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{
		Topic: "chunks", DisableBatching: true, EnableChunking: true, ChunkMaxMessageSize: 100_000,
	})
	options := pulsar.ConsumerOptions{Topic: "chunks", Type: pulsar.Shared}
	consumer := subscribe(client, options)
	large := strings.Repeat("0123456789", 100_000)
	send(producer, large, "small")
	for _, each := range take(consumer, large, "small") {
		must(consumer.Ack(each))
	}
	consumer.Close()
	nothing(subscribe(client, options), producer)
}

func cumulative(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "cumulative", DisableBatching: true})
	options := pulsar.ConsumerOptions{Topic: "cumulative"}
	consumer := subscribe(client, options)
	send(producer, "a", "b", "c")
	must(consumer.AckCumulative(take(consumer, "a", "b")[1]))
	consumer.Close()
	take(subscribe(client, options), "c")
}

func batchIndex(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "index", BatchingMaxPublishDelay: time.Second})
	options := pulsar.ConsumerOptions{
		Topic: "index", Type: pulsar.Shared, EnableBatchIndexAcknowledgment: true, AckWithResponse: true,
	}
	consumer := subscribe(client, options)
	sendAll(producer, numbered(5))
	for number, each := range take(consumer, "0", "1", "2", "3", "4") {
		if number%2 == 0 {
			must(consumer.Ack(each))
		}
	}
	consumer.Close()
	again := subscribe(client, options)
	for _, each := range take(again, "1", "3") {
		must(again.Ack(each))
	}
	nothing(again, producer)
}

func acknowledgeAnswers(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "answers", DisableBatching: true})
	options := pulsar.ConsumerOptions{Topic: "answers", Type: pulsar.Shared, AckWithResponse: true}
	consumer := subscribe(client, options)
	send(producer, "a", "b", "c")
	var ids []pulsar.MessageID
	for _, each := range take(consumer, "a", "b") {
		ids = append(ids, each.ID())
	}
	must(consumer.AckIDList(ids))
	consumer.Close()
	take(subscribe(client, options), "c")
}

func negative(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "negative", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{
		Topic: "negative", Type: pulsar.Shared, NackRedeliveryDelay: 100 * time.Millisecond,
	})
	send(producer, "a")
	for count := uint32(0); count < 3; count++ {
		message := take(consumer, "a")[0]
		if message.RedeliveryCount() != count {
			fail("redelivery count %d, expected %d", message.RedeliveryCount(), count)
		}
		consumer.Nack(message)
	}
	must(consumer.Ack(take(consumer, "a")[0]))
}

func deadLetters(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "dead", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{
		Topic: "dead", Type: pulsar.Shared, NackRedeliveryDelay: 50 * time.Millisecond,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 2, DeadLetterTopic: "dead-letters", InitialSubscriptionName: "s"},
	})
	send(producer, "a")
	letters := subscribe(client, pulsar.ConsumerOptions{Topic: "dead-letters", Type: pulsar.Shared})
	for {
		consumed := make(chan pulsar.Message, 1)
		go func() { consumed <- take(letters, "a")[0] }()
		for {
			select {
			case each := <-consumer.Chan():
				consumer.Nack(each.Message)
				continue
			case letter := <-consumed:
				if letter.Properties()["ORIGIN_MESSAGE_ID"] == "" && letter.Properties()["ORIGIN_MESSAGE_IDY_TIME"] == "" {
					fail("the letter has %v", letter.Properties())
				}
				must(letters.Ack(letter))
				nothing(consumer, producer)
				return
			case <-time.After(patience):
				fail("no dead letter")
			}
		}
	}
}

func retryLetters(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "retried", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{
		Topic: "retried", Type: pulsar.Shared, RetryEnable: true,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 5},
	})
	send(producer, "a")
	consumer.ReconsumeLater(take(consumer, "a")[0], 100*time.Millisecond)
	again := take(consumer, "a")[0]
	if again.Properties()["RECONSUMETIMES"] != "1" {
		fail("the letter has %v", again.Properties())
	}
	must(consumer.Ack(again))
}

func seek(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "seek", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "seek", StartMessageIDInclusive: true})
	ids := send(producer, "a", "b", "c")
	for _, each := range take(consumer, "a", "b", "c") {
		must(consumer.Ack(each))
	}
	must(consumer.SeekByTime(time.Now().Add(-time.Hour)))
	take(consumer, "a", "b", "c")
	must(consumer.Seek(ids[1])) // from now on the client itself passes over what is before it
	take(consumer, "b", "c")
	last, err := consumer.GetLastMessageIDs()
	must(err)
	if len(last) != 1 || last[0].EntryID() < ids[2].EntryID() {
		fail("last ids %v", last)
	}
}

func partitions(client pulsar.Client) { // the test has made it
	names, err := client.TopicPartitions("partitions")
	must(err)
	if len(names) != 3 {
		fail("partitions %v", names)
	}
	producer := produce(client, pulsar.ProducerOptions{Topic: "partitions", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "partitions", Type: pulsar.Shared})
	sendAll(producer, numbered(300))
	seen := map[string]bool{}
	on := map[int32]bool{}
	for len(seen) < 300 {
		message := receive(consumer)
		seen[string(message.Payload())] = true
		on[message.ID().PartitionIdx()] = true
		must(consumer.Ack(message))
	}
	if len(on) != 3 {
		fail("messages came from partitions %v", on)
	}
}

func pattern(client pulsar.Client) {
	first := produce(client, pulsar.ProducerOptions{Topic: "pattern-a"})
	produce(client, pulsar.ProducerOptions{Topic: "other"})
	consumer := subscribe(client, pulsar.ConsumerOptions{
		TopicsPattern: "persistent://public/default/pattern-.*", AutoDiscoveryPeriod: 200 * time.Millisecond,
	})
	send(first, "a")
	must(consumer.Ack(take(consumer, "a")[0]))
	second := produce(client, pulsar.ProducerOptions{Topic: "pattern-b"})
	send(second, "b")
	must(consumer.Ack(take(consumer, "b")[0]))
}

func severalTopics(client pulsar.Client) {
	consumer := subscribe(client, pulsar.ConsumerOptions{Topics: []string{"several-a", "several-b"}})
	found := map[string]bool{}
	for _, topic := range []string{"several-a", "several-b"} {
		send(produce(client, pulsar.ProducerOptions{Topic: topic}), topic)
	}
	for len(found) < 2 {
		message := receive(consumer)
		if !strings.HasSuffix(message.Topic(), string(message.Payload())) {
			fail("%s came from %s", message.Payload(), message.Topic())
		}
		found[string(message.Payload())] = true
		must(consumer.Ack(message))
	}
}

type record struct {
	ID   int32  `json:"id" avro:"id"`
	Name string `json:"name" avro:"name"`
}

const definition = `{"type":"record","name":"Record","fields":[{"name":"id","type":"int"},{"name":"name","type":"string"}]}`
const other = `{"type":"record","name":"Record","fields":[{"name":"id","type":"string"}]}`

func schemas(client pulsar.Client) {
	for number, schema := range []pulsar.Schema{
		pulsar.NewJSONSchema(definition, nil), pulsar.NewAvroSchema(definition, nil),
	} {
		topic := fmt.Sprint("schema-", number)
		producer := produce(client, pulsar.ProducerOptions{Topic: topic, Schema: schema})
		consumer := subscribe(client, pulsar.ConsumerOptions{Topic: topic, Schema: schema})
		_, err := producer.Send(limited(), &pulsar.ProducerMessage{Value: &record{7, "seven"}})
		must(err)
		message := receive(consumer)
		var found record
		must(message.GetSchemaValue(&found))
		if found != (record{7, "seven"}) {
			fail("received %v", found)
		}
		_, err = client.CreateProducer(pulsar.ProducerOptions{
			Topic: topic, Schema: pulsar.NewAvroSchema(other, nil),
		})
		if err == nil || !strings.Contains(err.Error(), "ncompatible") {
			fail("another schema: %v", err)
		}
	}
	// A producer without a schema that sends a message with one, on a partitioned topic too.
	for _, topic := range []string{"schema-later", "partitioned-schema"} {
		producer := produce(client, pulsar.ProducerOptions{Topic: topic})
		schema := pulsar.NewJSONSchema(definition, nil)
		_, err := producer.Send(limited(), &pulsar.ProducerMessage{Value: &record{8, "eight"}, Schema: schema})
		must(err)
		consumer := subscribe(client, pulsar.ConsumerOptions{Topic: topic, Schema: schema})
		var found record
		must(receive(consumer).GetSchemaValue(&found))
		if found.Name != "eight" {
			fail("received %v", found)
		}
	}
	for number, schema := range []pulsar.Schema{pulsar.NewStringSchema(nil), pulsar.NewBytesSchema(nil)} {
		topic := fmt.Sprint("schema-plain-", number)
		producer := produce(client, pulsar.ProducerOptions{Topic: topic, Schema: schema})
		var value any = "text"
		if number == 1 {
			value = []byte("text")
		}
		_, err := producer.Send(limited(), &pulsar.ProducerMessage{Value: value})
		must(err)
		take(subscribe(client, pulsar.ConsumerOptions{Topic: topic, Schema: schema}), "text")
	}
}

func readers(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "readers"})
	sendAll(producer, numbered(10))
	var ids []pulsar.MessageID
	read := func(start pulsar.MessageID, inclusive bool, expected int) {
		reader, err := client.CreateReader(pulsar.ReaderOptions{
			Topic: "readers", StartMessageID: start, StartMessageIDInclusive: inclusive,
		})
		must(err)
		defer reader.Close()
		count := 0
		for reader.HasNext() {
			message, err := reader.Next(limited())
			must(err)
			ids = append(ids, message.ID())
			count++
		}
		if count != expected {
			fail("read %d, expected %d", count, expected)
		}
	}
	read(pulsar.EarliestMessageID(), false, 10)
	read(ids[3], true, 7)
	read(ids[3], false, 6)
	read(pulsar.LatestMessageID(), false, 0)
	reader, err := client.CreateReader(pulsar.ReaderOptions{Topic: "readers", StartMessageID: pulsar.LatestMessageID()})
	must(err)
	must(reader.Seek(ids[8]))
	message, err := reader.Next(limited())
	must(err)
	if string(message.Payload()) != "8" && string(message.Payload()) != "9" {
		fail("read %s after a seek", message.Payload())
	}
}

func tableView(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "view", DisableBatching: true})
	for _, each := range []string{"a=1", "b=2", "a=3"} {
		key, value, _ := strings.Cut(each, "=")
		_, err := producer.Send(limited(), &pulsar.ProducerMessage{Key: key, Payload: []byte(value)})
		must(err)
	}
	var kind []byte
	view, err := client.CreateTableView(pulsar.TableViewOptions{
		Topic: "view", Schema: pulsar.NewBytesSchema(nil), SchemaValueType: reflect.TypeOf(kind),
	})
	must(err)
	names := view.Keys()
	sort.Strings(names)
	if strings.Join(names, ",") != "a,b" {
		fail("keys %v", names)
	}
}

type listener struct {
	told chan string
	name string
}

func (l listener) BecameActive(pulsar.Consumer, string, int32)   { l.told <- l.name + " active" }
func (l listener) BecameInactive(pulsar.Consumer, string, int32) { l.told <- l.name + " inactive" }

func events(client pulsar.Client) {
	told := make(chan string, 10)
	attach := func(name string) pulsar.Consumer {
		return subscribe(client, pulsar.ConsumerOptions{
			Topic: "events", Type: pulsar.Failover, Name: name, EventListener: listener{told, name},
		})
	}
	expect := func(text string) {
		select {
		case found := <-told:
			if found != text {
				fail("told %s, expected %s", found, text)
			}
		case <-time.After(patience):
			fail("not told %s", text)
		}
	}
	first := attach("a")
	expect("a active")
	attach("b")
	expect("b inactive")
	first.Close()
	expect("b active")
}

func nonPersistent(client pulsar.Client) {
	for number, kind := range []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared, pulsar.Failover, pulsar.KeyShared} {
		topic := fmt.Sprintf("non-persistent://public/default/np-%d", number)
		consumer := subscribe(client, pulsar.ConsumerOptions{Topic: topic, Type: kind})
		producer := produce(client, pulsar.ProducerOptions{Topic: topic})
		// Its permits may come a moment later than it does.
		reached := make(chan pulsar.Message, 1)
		go func() { reached <- receive(consumer) }()
		for waiting := true; waiting; {
			send(producer, "a")
			select {
			case message := <-reached:
				must(consumer.Ack(message))
				waiting = false
			case <-time.After(50 * time.Millisecond):
			}
		}
		consumer.Close()
		producer.Close()
	}
}

func exclusiveProducer(client pulsar.Client) {
	options := pulsar.ProducerOptions{Topic: "exclusive", ProducerAccessMode: pulsar.ProducerAccessModeExclusive}
	first := produce(client, options)
	if _, err := client.CreateProducer(options); err == nil {
		fail("a second exclusive producer came")
	}
	options.ProducerAccessMode = pulsar.ProducerAccessModeWaitForExclusive
	came := make(chan pulsar.Producer)
	go func() { came <- produce(client, options) }()
	send(first, "a")
	first.Close()
	send(<-came, "b")
	take(subscribe(client, pulsar.ConsumerOptions{Topic: "exclusive"}), "a", "b")
}

func delayed(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "delayed", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "delayed", Type: pulsar.Shared})
	begun := time.Now()
	_, err := producer.Send(limited(), &pulsar.ProducerMessage{Payload: []byte("late"), DeliverAfter: time.Second})
	must(err)
	send(producer, "now")
	take(consumer, "now", "late")
	if time.Since(begun) < 900*time.Millisecond {
		fail("it came after %v", time.Since(begun))
	}
}

func zeroQueue(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "zero", DisableBatching: true})
	send(producer, "a", "b")
	options := pulsar.ConsumerOptions{Topic: "zero", Type: pulsar.Shared, EnableZeroQueueConsumer: true}
	consumer := subscribe(client, options)
	must(consumer.Ack(take(consumer, "a")[0]))
	other := subscribe(client, options)
	take(other, "b")
}

func unsubscribe(client pulsar.Client) {
	producer := produce(client, pulsar.ProducerOptions{Topic: "left", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "left"})
	send(producer, "a")
	must(consumer.Ack(take(consumer, "a")[0]))
	must(consumer.Unsubscribe())
	take(subscribe(client, pulsar.ConsumerOptions{Topic: "left"}), "a")
}

// One message in and one out. In the metadata of its messages are no ids of transactions.
func transactions(client pulsar.Client) {
	source := produce(client, pulsar.ProducerOptions{Topic: "source", DisableBatching: true})
	batching := produce(client, pulsar.ProducerOptions{Topic: "sink"})
	single := produce(client, pulsar.ProducerOptions{Topic: "sink", DisableBatching: true})
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "source", Type: pulsar.Shared})
	seen := subscribe(client, pulsar.ConsumerOptions{Topic: "sink"})
	send(source, "a")
	for _, end := range []string{"aborted", "committed"} {
		txn, err := client.NewTransaction(time.Minute)
		must(err)
		message := take(consumer, "a")[0]
		for _, producer := range []pulsar.Producer{batching, single} {
			_, err = producer.Send(limited(), &pulsar.ProducerMessage{
				Payload: []byte(end), Transaction: txn,
			})
			must(err)
		}
		must(consumer.AckWithTxn(message, txn))
		if end == "committed" {
			must(txn.Commit(limited()))
		} else {
			must(txn.Abort(limited()))
		}
		if state := txn.GetState(); (state == pulsar.TxnCommitted) != (end == "committed") {
			fail("%s: state %v", end, state)
		}
	}
	take(seen, "committed", "committed")
	send(source, "b")
	message := take(consumer, "b")[0] // and not "a" again
	first, err := client.NewTransaction(time.Minute)
	must(err)
	must(consumer.AckWithTxn(message, first))
	second, err := client.NewTransaction(time.Minute)
	must(err)
	if consumer.AckWithTxn(message, second) == nil {
		fail("acknowledged in two transactions")
	}
	must(first.Commit(limited()))
}

func terminated(client pulsar.Client) { // the test has terminated it, with one message
	consumer := subscribe(client, pulsar.ConsumerOptions{Topic: "terminated", Type: pulsar.Shared})
	must(consumer.Ack(take(consumer, "last")[0]))
	_, err := client.CreateProducer(pulsar.ProducerOptions{Topic: "terminated"})
	if err == nil || !strings.Contains(err.Error(), "TopicTerminated") {
		fail("a producer of a terminated topic: %v", err)
	}
}
