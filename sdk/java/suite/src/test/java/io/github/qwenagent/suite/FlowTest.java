package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.gate;
import static io.github.qwenagent.suite.Place.say;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.Decision;
import io.github.qwenagent.Json;
import io.github.qwenagent.Message;
import io.github.qwenagent.PermissionMode;
import io.github.qwenagent.Pool;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.SessionOptions;
import io.github.qwenagent.Turn;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.reactivestreams.tck.TestEnvironment;
import org.reactivestreams.tck.flow.FlowPublisherVerification;
import org.testng.ITestResult;
import org.testng.TestListenerAdapter;
import org.testng.TestNG;

/** Messages as a publisher, and readers that are slow. */
class FlowTest extends SuiteTest {
    /** Collects messages and requests one after the other. */
    private static final class Collector implements Flow.Subscriber<Message> {
        private final List<Message> messages = new ArrayList<>();
        private final CompletableFuture<List<Message>> end = new CompletableFuture<>();
        private final int limit;
        private Flow.Subscription subscription;

        Collector(int limit) {
            this.limit = limit;
        }

        @Override
        public void onSubscribe(Flow.Subscription started) {
            subscription = started;
            started.request(1);
        }

        @Override
        public void onNext(Message message) {
            messages.add(message);
            if (messages.size() == limit) {
                subscription.cancel();
                end.complete(messages);
            }
            subscription.request(1);
        }

        @Override
        public void onError(Throwable failure) {
            end.completeExceptionally(failure);
        }

        @Override
        public void onComplete() {
            end.complete(messages);
        }
    }

    @Test
    void aPublisherDeliversTheTurnAndItsCancellationInterruptsIt() throws Exception {
        Place place = place(say("one ", "two"), say("half", gate("never")), say("next"));
        Session session = place.session();
        Collector whole = new Collector(Integer.MAX_VALUE);
        session.stream("Count.").publisher().subscribe(whole);
        assertEquals("one two", result(whole.end.get()).text());
        Collector some = new Collector(1);
        session.stream("Work.").publisher().subscribe(some);
        assertEquals(1, some.end.get().size());
        place.control("GET", "gone/1");
        assertEquals("next", session.run("Next.").text());
    }

    /** The publisher of a turn whose hub is a fake one, which writes as many lines as are asked for. */
    public static final class TurnVerification extends FlowPublisherVerification<Message> {
        private static AgentManager manager;
        private static final AtomicInteger SESSIONS = new AtomicInteger();

        /** Creates the verification. */
        public TurnVerification() {
            super(new TestEnvironment(20_000, 100));
        }

        @Override
        public Flow.Publisher<Message> createFlowPublisher(long elements) {
            Session session = manager.createSession(SessionOptions.builder().id("tck-" + SESSIONS.incrementAndGet()).build());
            return session.stream(String.valueOf(elements)).publisher();
        }

        @Override
        public Flow.Publisher<Message> createFailedFlowPublisher() {
            Flow.Publisher<Message> used = createFlowPublisher(1);
            used.subscribe(new Collector(Integer.MAX_VALUE));
            return used;
        }

        @Override
        public long maxElementsFromPublisher() {
            return 100_000;
        }
    }

    @Test
    void thePublisherKeepsTheRulesOfReactiveStreams() {
        TurnVerification.manager = fakeManager("count");
        TestNG rules = new TestNG(false);
        rules.setUseDefaultListeners(false);
        rules.setVerbose(0);
        TestListenerAdapter results = new TestListenerAdapter();
        rules.addListener(results);
        rules.setTestClasses(new Class<?>[] {TurnVerification.class});
        rules.run();
        List<String> failed = results.getFailedTests().stream().map(FlowTest::describe).toList();
        assertEquals(List.of(), failed);
        assertTrue(results.getPassedTests().size() >= 20, results.getPassedTests().size() + " rules");
    }

    private static String describe(ITestResult failed) {
        return failed.getName() + ": " + failed.getThrowable();
    }

    private static long memoryInUse() {
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    @Test
    void aReaderSlowerThanTheStreamLosesNothingStopsNoOtherAndMemoryStaysBounded() throws Exception {
        // Far more than the SDK and the hub hold, and a pause that is longer than the hub waits for a silent worker.
        int pieces = 60_000;
        String piece = "a piece of text that is long enough to count ";
        Place place = place(say("little"));
        Path script = Files.writeString(place.home.resolve("flood.json"), Json.of(List.of(List.of(Map.of("repeat", pieces, "text", piece)))).toString());
        AgentManager manager = place.manager(place.options()
                .pool(Pool.defaults().withHeartbeatInterval(Duration.ofMillis(500)).withHeartbeatTimeout(Duration.ofSeconds(3))));
        Session slow = manager.createSession(SessionOptions.builder().model("script:" + script).build());
        Session other = manager.createSession();
        long before = memoryInUse();
        long most = 0;
        long length = 0;
        int count = 0;
        try (Turn turn = slow.stream("Much.")) {
            for (Message message : turn) {
                if (!(message instanceof Message.Text text)) {
                    continue;
                }
                length += text.text().length();
                count++;
                if (count == 1) {
                    // Reads nothing while another session works.
                    assertEquals("little", other.run("Little.").text());
                    Thread.sleep(5_000);
                    most = memoryInUse() - before;
                } else if (count == pieces / 2) {
                    // A request of the same session is answered although its messages wait.
                    slow.setPermissionMode(PermissionMode.PLAN);
                }
            }
        }
        assertEquals((long) pieces * piece.length(), length);
        assertTrue(most < 24 << 20, most + " bytes were in memory while no one read");
    }

    @Test
    void callbacksAndTurnsOnVirtualThreadsPinNothing() throws Exception {
        if (Runtime.version().feature() < 21) {
            return;
        }
        Path recording = Files.createTempFile("pinned-", ".jfr");
        Place place = place(say(Place.touch("a")), say(Place.touch("b")), say("done"));
        Recording jfr = new Recording();
        try (jfr) {
            jfr.enable("jdk.VirtualThreadPinned").withoutThreshold().withStackTrace();
            jfr.start();
            Session session = place.session(place.options().canUseTool(request -> Decision.allow()));
            Result result = session.runAsync("Make files.").get();
            assertTrue(result.isOk());
            session.runAsync("/help").get();
            session.close();
            jfr.stop();
            jfr.dump(recording);
        }
        List<String> pinned = new ArrayList<>();
        for (RecordedEvent event : RecordingFile.readAllEvents(recording)) {
            pinned.add(String.valueOf(event.getStackTrace()));
        }
        Files.delete(recording);
        assertEquals(List.of(), pinned);
    }
}
