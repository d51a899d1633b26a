// Takes messages and publishes others in transactions, with the official client:
// `java Transactions.java URL one|many COUNT`. Prints the seconds that a transaction took, as JSON.
// COUNT others go before those that are timed.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.transaction.Transaction;

public class Transactions {
    static final int BATCH = 100;
    static final byte[] PAYLOAD = new byte[100];
    static PulsarClient client;
    static Consumer<byte[]> consumer;
    static List<Producer<byte[]>> producers = new ArrayList<>();

    static Message<byte[]> take() throws Exception {
        Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
        if (message == null) throw new AssertionError("no message came");
        return message;
    }

    static Transaction begin() throws Exception {
        return client.newTransaction().withTransactionTimeout(60, TimeUnit.SECONDS).build().get();
    }

    static void one() throws Exception {
        Message<byte[]> message = take();
        Transaction transaction = begin();
        producers.get(0).newMessage(transaction).value(PAYLOAD).send();
        consumer.acknowledgeAsync(message.getMessageId(), transaction).get();
        transaction.commit().get();
    }

    static void many() throws Exception {
        List<Message<byte[]>> messages = new ArrayList<>();
        while (messages.size() < BATCH) messages.add(take());
        Transaction transaction = begin();
        List<CompletableFuture<?>> done = new ArrayList<>();
        for (int at = 0; at < BATCH; at++) {
            done.add(producers.get(at % 3).newMessage(transaction).value(PAYLOAD).sendAsync());
            done.add(consumer.acknowledgeAsync(messages.get(at).getMessageId(), transaction));
        }
        for (CompletableFuture<?> each : done) each.get();
        transaction.commit().get();
    }

    public static void main(String[] arguments) throws Exception {
        boolean large = arguments[1].equals("many");
        int count = Integer.parseInt(arguments[2]);
        String run = Long.toString(System.nanoTime(), 36);
        client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true).build();
        consumer = client.newConsumer().topic("in-" + run).subscriptionName("worker")
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        for (int at = 0; at < 3; at++)
            producers.add(client.newProducer().topic("out-" + run + "-" + at).enableBatching(false)
                .blockIfQueueFull(true).create());
        Producer<byte[]> source = client.newProducer().topic("in-" + run).enableBatching(false)
            .blockIfQueueFull(true).create();
        for (int at = 0; at < 2 * count * (large ? BATCH : 1); at++) source.sendAsync(PAYLOAD);
        source.flush();
        long began = 0;
        for (int at = -count; at < count; at++) {
            if (at == 0) began = System.nanoTime();
            if (large) many(); else one();
        }
        double seconds = (System.nanoTime() - began) / 1e9 / count;
        client.close();
        System.out.println("{\"seconds\": " + seconds + "}");
    }
}
