package io.github.qwenagent.examples;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.github.qwenagent.AgentManager;
import io.github.qwenagent.Json;
import io.github.qwenagent.Message;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.Turn;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Serves a page that shows the answer while the agent writes it. Closing the page interrupts the turn. */
public final class StreamingWeb {
    private static final String PAGE = """
            <!doctype html><title>qwen</title>
            <form><input name="prompt" value="What files are here?" size="60"><button>Ask</button></form><pre id="answer"></pre>
            <script>
            document.querySelector('form').onsubmit = (event) => {
              event.preventDefault();
              const answer = document.querySelector('#answer');
              answer.textContent = '';
              const source = new EventSource('/stream?prompt=' + encodeURIComponent(event.target.prompt.value));
              source.onmessage = ({ data }) => { answer.textContent += JSON.parse(data); };
              source.addEventListener('done', ({ data }) => { answer.dataset.status = data; source.close(); });
            };
            </script>""";

    private StreamingWeb() {}

    /** Runs the example until its standard input ends. */
    public static void main(String[] arguments) throws IOException {
        try (AgentManager agents = AgentManager.open()) {
            HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            server.setExecutor(Executors.newCachedThreadPool());
            server.createContext("/", exchange -> {
                byte[] page = PAGE.getBytes(StandardCharsets.UTF_8);
                exchange.getResponseHeaders().set("Content-Type", "text/html; charset=utf-8");
                exchange.sendResponseHeaders(200, page.length);
                exchange.getResponseBody().write(page);
                exchange.close();
            });
            server.createContext("/stream", exchange -> stream(agents, exchange));
            server.start();
            System.out.println("http://127.0.0.1:" + server.getAddress().getPort() + "/");
            System.in.readAllBytes();
            server.stop(0);
        }
        System.exit(0);
    }

    /** Sends the turn as server-sent events. Writing fails when the page is closed, and leaving the block ends the turn. */
    private static void stream(AgentManager agents, HttpExchange exchange) throws IOException {
        String prompt = URLDecoder.decode(exchange.getRequestURI().getRawQuery().replaceFirst("^prompt=", ""), StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "text/event-stream");
        exchange.sendResponseHeaders(200, 0);
        try (OutputStream out = exchange.getResponseBody(); Session session = agents.createSession(); Turn turn = session.stream(prompt)) {
            for (Message message : turn) {
                if (message instanceof Message.Text piece) {
                    // As JSON the text is one line.
                    out.write(("data: " + Json.of(piece.text()) + "\n\n").getBytes(StandardCharsets.UTF_8));
                } else if (message instanceof Result result) {
                    out.write(("event: done\ndata: " + result.status() + "\n\n").getBytes(StandardCharsets.UTF_8));
                } else {
                    // A comment, so that a page that was closed is noticed.
                    out.write(":\n\n".getBytes(StandardCharsets.UTF_8));
                }
                out.flush();
            }
        }
    }
}
