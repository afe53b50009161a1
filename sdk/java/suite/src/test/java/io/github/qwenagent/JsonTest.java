package io.github.qwenagent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.internal.json.JsonException;
import io.github.qwenagent.internal.json.JsonReader;
import io.github.qwenagent.internal.json.JsonWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void valuesAreReadAndWritten() {
        for (String text : List.of("null", "true", "false", "0", "-1", "9223372036854775807", "1.5", "\"a\\\"b\\\\c\\n\\u0001\"", "[]", "{}",
                "[1,[2,{\"a\":null}]]", "{\"a\":{\"b\":[]},\"c\":\"完了 🎉\"}")) {
            assertEquals(text, Json.parse(text).toString());
        }
        assertEquals("/\b\f\r\t🎉", Json.parse(" \"\\/\\b\\f\\r\\t\\ud83c\\udf89\" ").value());
        assertEquals(new BigInteger("9223372036854775808"), Json.parse("9223372036854775808").value());
        assertEquals(new BigDecimal("1e400"), Json.parse("1e400").value());
        assertEquals(2L, Json.parse("{\"a\":1,\"a\":2}").get("a").value());
        assertNull(Json.parse("{\"a\":null}").get("a"));
        assertEquals(Json.parse("{\"a\":1}"), Json.parse(" { \"a\" : 1 } "));
        assertEquals(Json.parse("[1]").hashCode(), Json.of(List.of(1L)).hashCode());
        assertNotEquals(Json.parse("1"), Json.parse("2"));
    }

    @Test
    void textThatIsNotJsonIsAnError() {
        for (String text : List.of("", " ", "{", "}", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "01", "-", "1.", ".5", "1e", "+1", "tru", "nul",
                "\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\n\"", "1 2", "[1", "{\"a\":1", "NaN", "Infinity", "'a'", "[".repeat(600), "9".repeat(2000),
                "1e99999999999")) {
            assertThrows(IllegalArgumentException.class, () -> Json.parse(text), text);
        }
        assertThrows(IllegalArgumentException.class, () -> Json.of(Double.NaN).toString());
        assertThrows(IllegalArgumentException.class, () -> Json.of(new Object()));
    }

    /** Returns a random value. */
    private static Object random(Random random, int depth) {
        switch (random.nextInt(depth > 4 ? 6 : 8)) {
            case 0:
                return random.nextLong();
            case 1:
                return random.nextDouble();
            case 2:
                return random.nextBoolean();
            case 3:
                return null;
            case 4, 5:
                StringBuilder text = new StringBuilder();
                for (int i = random.nextInt(12); i > 0; i--) {
                    text.appendCodePoint(random.nextInt(3) == 0 ? random.nextInt(0x80) : random.nextInt(0xd800));
                }
                return text.toString();
            case 6:
                List<Object> list = new ArrayList<>();
                for (int i = random.nextInt(5); i > 0; i--) {
                    list.add(random(random, depth + 1));
                }
                return list;
            default:
                Map<String, Object> map = new LinkedHashMap<>();
                for (int i = random.nextInt(5); i > 0; i--) {
                    map.put("k" + random.nextInt(100), random(random, depth + 1));
                }
                return map;
        }
    }

    @Test
    void randomValuesAreTheSameAfterWritingAndReading() throws JsonException {
        Random random = new Random(26);
        for (int i = 0; i < 20_000; i++) {
            Object value = random(random, 0);
            assertEquals(value, JsonReader.read(JsonWriter.write(value)));
        }
    }

    @Test
    void damagedTextIsReadOrRefusedButNeverFailsOtherwise() {
        Random random = new Random(27);
        int refused = 0;
        for (int i = 0; i < 50_000; i++) {
            byte[] text = JsonWriter.write(random(random, 0)).getBytes(StandardCharsets.UTF_8);
            for (int n = 1 + random.nextInt(3); n > 0 && text.length > 0; n--) {
                text[random.nextInt(text.length)] = (byte) random.nextInt(256);
            }
            try {
                JsonReader.read(text, 0, random.nextInt(4) == 0 ? random.nextInt(text.length + 1) : text.length);
            } catch (JsonException e) {
                refused++;
            }
        }
        assertTrue(refused > 10_000, refused + " refused");
    }

    /** A record with components of many types. */
    record Many(int number, long big, double ratio, String text, boolean flag, List<Inner> list, Map<String, Inner> map, Set<String> set,
            Optional<String> maybe, OptionalInt count, Instant time, URI address, Path path, String[] array, BigDecimal exact, Json any, Object free) {}

    /** A record in a record. */
    record Inner(@Named("the-name") String name) {}

    @Test
    void recordsOfManyTypesAreConvertedBothWays() {
        Many many = new Many(1, 2L, 2.5, "t", true, List.of(new Inner("a")), Map.of("k", new Inner("b")), Set.of("s"), Optional.of("o"), OptionalInt.of(3),
                Instant.EPOCH, URI.create("http://127.0.0.1/"), Path.of("/tmp"), new String[] {"x"}, new BigDecimal("1.25"), Json.parse("[1]"), "free");
        Json json = Json.of(many);
        assertEquals("a", ((Map<?, ?>) ((List<?>) json.get("list").value()).get(0)).get("the-name"));
        Many again = json.as(Many.class);
        assertEquals(json, Json.of(again));
        assertEquals(many.maybe(), again.maybe());
        assertEquals(List.of(1L), Json.of(List.of(1L)).as(List.class));
    }

    /** A record whose constructor refuses values. */
    record Positive(int value) {
        Positive {
            if (value <= 0) {
                throw new IllegalArgumentException("not positive");
            }
        }
    }

    @Test
    void valuesThatDoNotFitAreErrorsWithTheirPlace() {
        Map<String, Class<?>> each = Map.of("{}", Inner.class, "[]", Inner.class, "{\"the-name\":1}", Inner.class, "{\"value\":-1}", Positive.class,
                "{\"value\":1.5}", Positive.class, "{\"value\":3000000000}", Positive.class, "{\"value\":null}", Positive.class);
        each.forEach((text, type) -> assertThrows(IllegalArgumentException.class, () -> Json.parse(text).as(type), text));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Json.parse("{\"the-name\":1}").as(Inner.class)).getMessage().contains("/the-name"));
        assertEquals(new Positive(2), Json.parse("{\"value\":2.0}").as(Positive.class));
        assertThrows(IllegalArgumentException.class, () -> Json.parse("{\"depth\":1}").as(Thread.class));
        assertThrows(IllegalArgumentException.class, () -> Json.parse("[]").as(Wire.ThoughtRecord.class));
        assertEquals("s", Json.parse("{\"subject\":\"s\"}").as(Wire.ThoughtRecord.class).subject());
    }
}
