import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;
import org.apache.pulsar.admin.cli.PulsarAdminTool;

/**
 * Runs commands of pulsar-admin in one process, as each by itself takes two seconds to start. A line comes in
 * for each, its arguments with tabs between; one goes out: true or false, and in base64 what it printed, and
 * what it complained about.
 */
public class Commands {
    static class Tool extends PulsarAdminTool {
        Tool(Properties properties) throws Exception {
            super(properties);
        }

        boolean perform(String[] arguments) {
            return run(arguments);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("webServiceUrl", arguments[0]);
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            ByteArrayOutputStream complained = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
            Tool tool = new Tool(properties);
            boolean done = tool.perform(line.split("\t", -1));
            tool.getPulsarAdminSupplier().get().close();
            out.println(done + " " + text(printed) + " " + text(complained));
            out.flush();
        }
        System.exit(0);
    }

    static String text(ByteArrayOutputStream bytes) {
        return "=" + Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
