// Does with the official Java client what others cannot: `java Official.java URL WEB-URL`. With
// `without-coordinator` in the place of the latter: that a client with transactions is not opened.
// What does not hold is an exception.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerEventListener;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException;

public class Official {
    static final int PATIENCE = 60; // seconds
    static final SubscriptionInitialPosition EARLIEST = SubscriptionInitialPosition.Earliest;
    static PulsarClient client;
    static String web;

    static void hold(boolean what, String text) {
        if (!what) throw new AssertionError(text);
    }

    static <T> T take(Consumer<T> consumer) throws Exception {
        Message<T> message = consumer.receive(PATIENCE, TimeUnit.SECONDS);
        hold(message != null, "nothing came on " + consumer.getTopic());
        consumer.acknowledge(message);
        return message.getValue();
    }

    /** A new topic is told, not found by asking: that would take ten minutes. */
    static void pattern() throws Exception {
        Consumer<String> consumer = client.newConsumer(Schema.STRING)
            .topicsPattern(Pattern.compile("persistent://public/default/watched-.*"))
            .patternAutoDiscoveryPeriod(600, TimeUnit.SECONDS)
            .subscriptionName("s").subscriptionInitialPosition(EARLIEST).subscribe();
        client.newProducer(Schema.STRING).topic("watched-new").create().send("hello");
        hold(take(consumer).equals("hello"), "pattern");
    }

    record Listener(String name, BlockingQueue<String> told) implements ConsumerEventListener {
        public void becameActive(Consumer<?> consumer, int partition) { told.add(name + " active"); }
        public void becameInactive(Consumer<?> consumer, int partition) { told.add(name + " inactive"); }
    }

    static void events() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        Consumer<byte[]> first = null;
        for (String name : new String[] {"a", "b"}) {
            Consumer<byte[]> made = client.newConsumer().topic("events").subscriptionName("s")
                .subscriptionType(SubscriptionType.Failover).consumerName(name)
                .consumerEventListener(new Listener(name, told)).subscribe();
            first = first == null ? made : first;
            String expected = name.equals("a") ? "a active" : "b inactive";
            hold(expected.equals(told.poll(PATIENCE, TimeUnit.SECONDS)), expected);
        }
        first.close();
        hold("b active".equals(told.poll(PATIENCE, TimeUnit.SECONDS)), "b active");
    }

    /** The test has terminated it, with one message. */
    static void terminated() throws Exception {
        Consumer<byte[]> consumer = client.newConsumer().topic("terminated")
            .subscriptionName("s").subscriptionInitialPosition(EARLIEST).subscribe();
        take(consumer);
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        while (!consumer.hasReachedEndOfTopic()) {
            hold(System.nanoTime() < until, "end of topic");
            Thread.sleep(20);
        }
    }

    static void chunks() throws Exception {
        byte[] large = new byte[1_000_000];
        Arrays.fill(large, (byte) 7);
        Producer<byte[]> producer = client.newProducer().topic("chunks").enableBatching(false)
            .enableChunking(true).chunkMaxMessageSize(100_000).create();
        Consumer<byte[]> consumer = client.newConsumer().topic("chunks").subscriptionName("s")
            .startMessageIdInclusive().subscribe();
        MessageId id = producer.send(large);
        hold(consumer.receive(PATIENCE, TimeUnit.SECONDS).size() == large.length, "chunks");
        consumer.redeliverUnacknowledgedMessages(); // of another epoch, which the broker repeats
        hold(Arrays.equals(take(consumer), large), "redelivered");
        consumer.seek(id);
        hold(Arrays.equals(take(consumer), large), "sought");
    }

    static void compression() throws Exception {
        Consumer<String> consumer = client.newConsumer(Schema.STRING).topic("compression")
            .subscriptionName("s").subscribe();
        String large = "compressible ".repeat(1000);
        for (CompressionType kind : CompressionType.values())
            for (boolean batches : new boolean[] {true, false})
                for (String text : new String[] {large, "a", ""}) {
                    Producer<String> producer = client.newProducer(Schema.STRING).topic("compression")
                        .compressionType(kind).enableBatching(batches).create();
                    producer.send(text);
                    producer.close();
                    hold(take(consumer).equals(text), kind + " " + batches);
                }
    }

    /** The test has made the topic, with three. */
    static void partitions() throws Exception {
        Producer<String> producer = client.newProducer(Schema.STRING).topic("partitions").create();
        for (int number = 0; number < 30; number++) producer.send("m" + number);
        Consumer<String> consumer = client.newConsumer(Schema.STRING).topic("partitions")
            .subscriptionName("s").subscriptionType(SubscriptionType.Shared).isAckReceiptEnabled(true)
            .enableBatchIndexAcknowledgment(true).subscriptionInitialPosition(EARLIEST).subscribe();
        for (int number = 0; number < 30; number++) take(consumer);
        Reader<String> reader = client.newReader(Schema.STRING).topic("partitions")
            .startMessageId(MessageId.earliest).create();
        int found = 0;
        for (; reader.hasMessageAvailable(); found++) reader.readNext(PATIENCE, TimeUnit.SECONDS);
        hold(found == 30, "read " + found);
    }

    static void deadLetters() throws Exception {
        Consumer<String> consumer = client.newConsumer(Schema.STRING).topic("dead").subscriptionName("s")
            .subscriptionType(SubscriptionType.Shared)
            .negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS)
            .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2).build()).subscribe();
        Consumer<String> letters = client.newConsumer(Schema.STRING).topic("dead-s-DLQ")
            .subscriptionName("i").subscriptionInitialPosition(EARLIEST).subscribe();
        client.newProducer(Schema.STRING).topic("dead").create().send("a");
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        Message<String> letter = null;
        while (letter == null) { // it is given up while somebody receives
            hold(System.nanoTime() < until, "dead letter");
            Message<String> message = consumer.receive(100, TimeUnit.MILLISECONDS);
            if (message != null) consumer.negativeAcknowledge(message);
            letter = letters.receive(100, TimeUnit.MILLISECONDS);
        }
        hold(letter.getValue().equals("a"), "dead letter");
    }

    /** Of a batch the index in front of the entry is that of its last message. */
    static void indexes() throws Exception {
        Consumer<byte[]> consumer = client.newConsumer().topic("indexes").subscriptionName("s")
            .subscriptionInitialPosition(EARLIEST).subscribe();
        Producer<byte[]> producer = client.newProducer().topic("indexes")
            .batchingMaxPublishDelay(1, TimeUnit.HOURS).create();
        long began = System.currentTimeMillis();
        for (int i = 0; i < 5; i++) producer.sendAsync(new byte[] {(byte) i});
        producer.flush();
        for (int i = 5; i < 7; i++) {
            producer.sendAsync(new byte[] {(byte) i});
            producer.flush();
        }
        for (int i = 0; i < 7; i++) {
            Message<byte[]> message = consumer.receive(PATIENCE, TimeUnit.SECONDS);
            hold(message.getData()[0] == i && message.getIndex().get() == i, "index " + i);
            hold(message.getBrokerPublishTime().get() >= began, "broker's time " + i);
        }
    }

    static <T> T end(CompletableFuture<T> call) throws Exception {
        return call.get(PATIENCE, TimeUnit.SECONDS);
    }

    /** It fails with such an exception. */
    static void fails(Class<?> kind, CompletableFuture<?> call) throws Exception {
        try {
            end(call);
        } catch (ExecutionException error) {
            hold(kind.isInstance(error.getCause()), kind + ", and not " + error.getCause());
            return;
        }
        throw new AssertionError("no " + kind);
    }

    static Transaction begin(PulsarClient own, int seconds) throws Exception {
        return end(own.newTransaction().withTransactionTimeout(seconds, TimeUnit.SECONDS).build());
    }

    /** Messages in and out, in transactions that are committed, aborted, and that time out. */
    static void transactions(String url) throws Exception {
        PulsarClient own = PulsarClient.builder().serviceUrl(url).enableTransaction(true)
            .operationTimeout(PATIENCE, TimeUnit.SECONDS).build();
        Producer<String> source = own.newProducer(Schema.STRING).topic("source").create();
        Producer<String> sink = own.newProducer(Schema.STRING).topic("partitions-sink").create();
        Consumer<String> consumer = own.newConsumer(Schema.STRING).topic("source")
            .subscriptionName("s").subscriptionType(SubscriptionType.Shared)
            .subscriptionInitialPosition(EARLIEST).subscribe();
        Consumer<String> seen = own.newConsumer(Schema.STRING).topic("partitions-sink")
            .subscriptionName("s").subscriptionInitialPosition(EARLIEST).subscribe();
        source.send("a");
        source.send("b");
        for (boolean commits : new boolean[] {false, true}) {
            Transaction txn = begin(own, 60);
            for (String expected : new String[] {"a", "b"}) {
                Message<String> message = consumer.receive(PATIENCE, TimeUnit.SECONDS);
                hold(message != null && message.getValue().equals(expected), expected);
                sink.newMessage(txn).value(expected + commits).sendAsync();
                consumer.acknowledgeAsync(message.getMessageId(), txn);
            }
            end(commits ? txn.commit() : txn.abort());
            Transaction.State state = commits ? Transaction.State.COMMITTED : Transaction.State.ABORTED;
            hold(txn.getState() == state, "state " + txn.getState());
            fails(TransactionCoordinatorClientException.InvalidTxnStatusException.class, txn.commit());
        }
        Set<String> found = new HashSet<>(List.of(take(seen), take(seen)));
        hold(found.equals(Set.of("atrue", "btrue")), "seen " + found);
        hold(seen.receive(100, TimeUnit.MILLISECONDS) == null, "one that was aborted");

        source.send("c");
        Message<String> message = consumer.receive(PATIENCE, TimeUnit.SECONDS);
        hold(message.getValue().equals("c"), "what was acknowledged came again");
        Transaction first = begin(own, 60);
        Transaction second = begin(own, 60);
        end(consumer.acknowledgeAsync(message.getMessageId(), first));
        sink.newMessage(second).value("lost").send();
        fails(PulsarClientException.TransactionConflictException.class,
            consumer.acknowledgeAsync(message.getMessageId(), second));
        fails(PulsarClientException.TransactionHasOperationFailedException.class, second.commit());
        end(first.commit());

        Transaction late = begin(own, 1);
        sink.newMessage(late).value("late").send();
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        while (late.getState() != Transaction.State.TIME_OUT) {
            hold(System.nanoTime() < until, "timeout");
            Thread.sleep(20);
        }
        fails(TransactionCoordinatorClientException.InvalidTxnStatusException.class, late.commit());
        sink.send("last");
        hold(take(seen).equals("last"), "last");
        refused(own, source, consumer);
        own.close();
    }

    static int status(String web, String path) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(web + path))
            .POST(HttpRequest.BodyPublishers.noBody()).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding())
            .statusCode();
    }

    /** What is not open takes nothing, and what an operator aborted is not committed. */
    static void refused(PulsarClient own, Producer<String> source, Consumer<String> consumer)
        throws Exception {
        fails(PulsarClientException.InvalidConfigurationException.class,
            client.newTransaction().build());
        source.send("d");
        Message<String> message = consumer.receive(PATIENCE, TimeUnit.SECONDS);
        Class<?> kind = TransactionCoordinatorClientException.InvalidTxnStatusException.class;
        for (boolean commits : new boolean[] {false, true}) {
            Transaction ended = begin(own, 60);
            end(commits ? ended.commit() : ended.abort());
            fails(kind, source.newMessage(ended).value("late").sendAsync());
            fails(kind, consumer.acknowledgeAsync(message.getMessageId(), ended));
            fails(kind, ended.abort());
        }
        Transaction open = begin(own, 60);
        fails(PulsarClientException.InvalidConfigurationException.class,
            consumer.acknowledgeCumulativeAsync(message.getMessageId(), open));
        end(consumer.acknowledgeAsync(message.getMessageId(), open));
        String id = open.getTxnID().getMostSigBits() + "/" + open.getTxnID().getLeastSigBits();
        int told = status(web, "/admin/v3/transactions/abortTransaction/" + id);
        hold(told == 204, "aborting " + id + ": " + told);
        fails(kind, open.commit());
        hold(open.getState() == Transaction.State.ERROR, "state " + open.getState());
        hold(take(consumer).equals("d"), "what was acknowledged did not come again");
    }

    static void withoutCoordinator(String url) throws Exception {
        try {
            PulsarClient.builder().serviceUrl(url).enableTransaction(true)
                .operationTimeout(PATIENCE, TimeUnit.SECONDS).build().close();
        } catch (PulsarClientException error) {
            return;
        }
        throw new AssertionError("a client with transactions was opened");
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[1].equals("without-coordinator")) {
            withoutCoordinator(arguments[0]);
            return;
        }
        web = arguments[1];
        client = PulsarClient.builder().serviceUrl(arguments[0])
            .operationTimeout(PATIENCE, TimeUnit.SECONDS).build();
        pattern();
        events();
        terminated();
        chunks();
        compression();
        partitions();
        deadLetters();
        indexes();
        transactions(arguments[0]);
        client.close();
    }
}
