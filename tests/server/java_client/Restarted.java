// Holds a transaction open while its broker is killed and started again: `java Restarted.java URL`.
// Says "open", waits for a line, and goes on. What does not hold is an exception.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.transaction.Transaction;

public class Restarted {
    static final int PATIENCE = 60; // seconds

    static void hold(boolean what, String text) {
        if (!what) throw new AssertionError(text);
    }

    static Consumer<String> subscribe(PulsarClient client, String topic) throws Exception {
        return client.newConsumer(Schema.STRING).topic(topic).subscriptionName("s")
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    static List<String> left(Consumer<String> consumer, int wait) throws Exception {
        List<String> found = new ArrayList<>();
        Message<String> message = consumer.receive(wait, TimeUnit.MILLISECONDS);
        while (message != null) {
            found.add(message.getValue());
            consumer.acknowledge(message);
            message = consumer.receive(500, TimeUnit.MILLISECONDS);
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0])
                .enableTransaction(true).build()) {
            Consumer<String> in = subscribe(client, "in");
            Consumer<String> out = subscribe(client, "out");
            Producer<String> fill = client.newProducer(Schema.STRING).topic("in").create();
            Producer<String> batched = client.newProducer(Schema.STRING).topic("out").create();
            Transaction kept = begin(client);
            Transaction given = begin(client);
            for (int i = 0; i < 4; i++) fill.send("in" + i);
            Message<String> first = in.receive(PATIENCE, TimeUnit.SECONDS);
            Message<String> second = in.receive(PATIENCE, TimeUnit.SECONDS);
            in.acknowledgeAsync(first.getMessageId(), kept).get();
            in.acknowledgeAsync(second.getMessageId(), given).get();
            for (int i = 0; i < 5; i++) batched.newMessage(kept).value("kept" + i).sendAsync();
            batched.flush();
            for (int i = 0; i < 5; i++) batched.newMessage(given).value("given" + i).sendAsync();
            batched.flush();
            // Of its own: a plain message may join the transaction of those before it in a batch.
            client.newProducer(Schema.STRING).topic("out").create().send("plain");
            System.out.println("open");
            System.in.read();
            hold(out.receive(2, TimeUnit.SECONDS) == null, "seen before the commit");
            batched.newMessage(kept).value("after").send();
            given.abort().get(PATIENCE, TimeUnit.SECONDS);
            kept.commit().get(PATIENCE, TimeUnit.SECONDS);
            hold(kept.getState() == Transaction.State.COMMITTED, "state");
            List<String> found = left(out, 20000);
            List<String> wanted = List.of("kept0", "kept1", "kept2", "kept3", "kept4", "plain", "after");
            hold(found.equals(wanted), "out: " + found);
            in.redeliverUnacknowledgedMessages();
            found = left(in, 20000);
            hold(found.equals(List.of("in1", "in2", "in3")), "in: " + found);
        }
    }

    static Transaction begin(PulsarClient client) throws Exception {
        return client.newTransaction().withTransactionTimeout(5, TimeUnit.MINUTES).build().get();
    }
}
