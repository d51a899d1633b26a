import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.Arrays;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.SyncMode;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.wire.DocumentContext;

/** Does what a line of its input says, and answers with a line. Its named tailer keeps its place. */
public class ChronicleSide {
    static ChronicleQueue open(Path folder, boolean flushed) {
        SingleChronicleQueueBuilder builder = ChronicleQueue.singleBuilder(folder);
        return flushed ? builder.syncMode(SyncMode.SYNC).build() : builder.build();
    }

    static void publish(ExcerptAppender appender, int count, int size, int together) {
        Bytes<?> payload = Bytes.allocateElasticDirect(size);
        payload.write(new byte[size]);
        for (int at = 0; at < count; at++) {
            payload.writeLong(0, at);
            appender.writeBytes(payload);
            payload.readPosition(0);
            if (together > 0 && (at % together == together - 1 || at == count - 1)) {
                appender.sync();
            }
        }
    }

    static int consume(ExcerptTailer tailer, int count, byte[] payload) {
        for (int at = 0; at < count; ) {
            try (DocumentContext document = tailer.readingDocument()) {
                if (document.isPresent()) {
                    document.wire().bytes().read(payload);
                    at++;
                }
            }
        }
        return count;
    }

    static void warm(Path folder, int count) {
        Path other = folder.resolve("warm-" + ProcessHandle.current().pid());
        try (ChronicleQueue queue = open(other, false)) {
            publish(queue.createAppender(), count, 100, 0);
            consume(queue.createTailer("worker"), count, new byte[100]);
        }
    }

    static void echo(Path folder, int count) {
        try (ChronicleQueue there = open(folder.resolve("there"), false);
                ChronicleQueue back = open(folder.resolve("back"), false)) {
            ExcerptTailer tailer = there.createTailer("worker");
            ExcerptAppender appender = back.createAppender();
            byte[] payload = new byte[100];
            for (int at = 0; at < count; at++) {
                consume(tailer, 1, payload);
                publish(appender, 1, payload.length, 0);
            }
        }
    }

    static long ping(Path folder, int count) {
        long[] taken = new long[count];
        try (ChronicleQueue there = open(folder.resolve("there"), false);
                ChronicleQueue back = open(folder.resolve("back"), false)) {
            ExcerptAppender appender = there.createAppender();
            ExcerptTailer tailer = back.createTailer("worker");
            byte[] payload = new byte[100];
            for (int at = 0; at < count; at++) {
                long began = System.nanoTime();
                publish(appender, 1, payload.length, 0);
                consume(tailer, 1, payload);
                taken[at] = System.nanoTime() - began;
            }
        }
        Arrays.sort(taken);
        return taken[count / 2];
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        boolean flushed = arguments[1].equals("flushed");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        ChronicleQueue queue = open(folder.resolve("measured"), flushed);
        ExcerptAppender appender = queue.createAppender();
        ExcerptTailer tailer = queue.createTailer("worker");
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            int count = Integer.parseInt(words[1]);
            int size = Integer.parseInt(words[2]);
            long found = 0;
            switch (words[0]) {
                case "warm" -> warm(folder, count);
                case "publish" -> publish(appender, count, size, Integer.parseInt(words[3]));
                case "consume" -> consume(tailer, count, new byte[size]);
                case "echo" -> echo(folder, count);
                case "ping" -> found = ping(folder, count);
                case "threads" -> {
                    Thread other = new Thread(() -> echo(folder, count));
                    other.start();
                    found = ping(folder, count);
                    other.join();
                }
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println("done " + found);
        }
        queue.close();
    }
}
