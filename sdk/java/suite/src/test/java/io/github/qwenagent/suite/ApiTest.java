package io.github.qwenagent.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.qwenagent.AgentManager;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The list of public names: nothing is added or removed without a change of API.md, and each name has a test. */
class ApiTest {
    private static final Set<String> IMPLICIT = Set.of("equals", "hashCode", "toString", "values", "valueOf", "main", "annotationType");
    private static final Pattern TEST = Pattern.compile("(?m)^    @Test\\s+void (\\w+)\\(");

    /** Returns the public types of the exported package: the generated wire types are listed by their enclosing type. */
    private static List<Class<?>> types() throws Exception {
        List<Class<?>> types = new ArrayList<>();
        URI jar = AgentManager.class.getProtectionDomain().getCodeSource().getLocation().toURI();
        try (FileSystem files = FileSystems.newFileSystem(Path.of(jar)); var paths = Files.list(files.getPath("/io/github/qwenagent"))) {
            for (Path path : paths.toList()) {
                String name = path.getFileName().toString();
                if (name.endsWith(".class") && !name.equals("package-info.class") && !name.startsWith("Wire$")) {
                    Class<?> type = Class.forName("io.github.qwenagent." + name.replace(".class", ""));
                    if (isPublic(type)) {
                        types.add(type);
                    }
                }
            }
        }
        return types;
    }

    private static boolean isPublic(Class<?> type) {
        boolean isOwn = Modifier.isPublic(type.getModifiers()) && !type.isAnonymousClass();
        return isOwn && (type.getEnclosingClass() == null || isPublic(type.getEnclosingClass()));
    }

    /** Returns the signatures of the public names by `Type` and `Type.method`. */
    private static Map<String, Set<String>> names() throws Exception {
        Map<String, Set<String>> names = new TreeMap<>();
        for (Class<?> type : types()) {
            String owner = type.getName().replace("io.github.qwenagent.", "").replace('$', '.');
            names.put(owner, new TreeSet<>());
            for (Method method : type.getDeclaredMethods()) {
                if (Modifier.isPublic(method.getModifiers()) && !method.isSynthetic() && !IMPLICIT.contains(method.getName())) {
                    List<String> parameters = Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName).toList();
                    names.computeIfAbsent(owner + "." + method.getName(), name -> new TreeSet<>())
                            .add((Modifier.isStatic(method.getModifiers()) ? "static " : "") + "(" + String.join(", ", parameters) + ") " + method.getReturnType().getSimpleName());
                }
            }
        }
        return names;
    }

    /** Returns the text of every test by its name. */
    private static Map<String, String> tests() throws IOException {
        Map<String, String> tests = new TreeMap<>();
        try (var paths = Files.walk(Place.root().resolve("sdk/java/suite/src/test"))) {
            for (Path path : paths.filter(file -> file.toString().endsWith("Test.java") && !file.endsWith("ApiTest.java")).toList()) {
                String text = Files.readString(path);
                List<Integer> starts = new ArrayList<>();
                List<String> found = new ArrayList<>();
                for (Matcher matcher = TEST.matcher(text); matcher.find();) {
                    starts.add(matcher.start());
                    found.add(path.getFileName().toString().replace(".java", ".") + matcher.group(1));
                }
                for (int i = 0; i < starts.size(); i++) {
                    tests.merge(found.get(i), text.substring(starts.get(i), i + 1 < starts.size() ? starts.get(i + 1) : text.length()), String::concat);
                }
            }
        }
        return tests;
    }

    /** Sources that tests run: examples, the README and helpers. */
    private static String helpers() throws IOException {
        StringBuilder text = new StringBuilder(Files.readString(Place.root().resolve("sdk/java/README.md")));
        for (String folder : List.of("suite/src/test", "examples/src/main")) {
            try (var paths = Files.walk(Place.root().resolve("sdk/java").resolve(folder))) {
                for (Path path : paths.filter(file -> file.toString().endsWith(".java") && !file.endsWith("ApiTest.java")).toList()) {
                    text.append(Files.readString(path));
                }
            }
        }
        return text.toString();
    }

    /** Returns a test that uses a name: preferably one that names the type, too. */
    private static String coveringTest(String name, boolean isStatic, Map<String, String> tests, String helpers) {
        String[] parts = name.split("\\.");
        String member = parts[parts.length - 1];
        String owner = parts.length > 1 ? parts[parts.length - 2] : "";
        boolean isMethod = Character.isLowerCase(member.charAt(0));
        Pattern type = Pattern.compile("\\b" + (isMethod ? owner : member) + "\\b");
        Pattern use = !isMethod ? type : Pattern.compile(isStatic ? "\\b" + owner + "(\\.|::)" + member + "\\b" : "(\\.|::)" + member + "\\b|\\b" + member + "\\(");
        String other = "";
        for (Map.Entry<String, String> test : tests.entrySet()) {
            if (use.matcher(test.getValue()).find()) {
                if (isStatic || type.matcher(test.getValue()).find()) {
                    return test.getKey();
                }
                other = other.isEmpty() ? test.getKey() : other;
            }
        }
        return other.isEmpty() && use.matcher(helpers).find() ? "PromisesTest.theExamplesWork" : other;
    }

    @Test
    void theListOfPublicNamesIsCompleteAndEachNameHasATest() throws Exception {
        Map<String, String> tests = tests();
        String helpers = helpers();
        StringBuilder table = new StringBuilder("# Public names of the Java SDK\n\nEach with its signatures and a test that uses it. `QWEN_BLESS=1 sdk/java/check ApiTest` "
                + "writes this file;\nthe types of `Wire` are generated from schemas/.\n\n| name | signatures | test |\n|---|---|---|\n");
        List<String> untested = new ArrayList<>();
        names().forEach((name, signatures) -> {
            String test = coveringTest(name, signatures.stream().anyMatch(each -> each.startsWith("static")), tests, helpers);
            if (test.isEmpty()) {
                untested.add(name);
            }
            String shown = signatures.isEmpty() ? "type" : "`" + String.join("`, `", signatures) + "`";
            table.append("| `").append(name).append("` | ").append(shown).append(" | `").append(test).append("` |\n");
        });
        assertEquals(List.of(), untested);
        Path file = Place.root().resolve("sdk/java/API.md");
        if (System.getenv("QWEN_BLESS") != null) {
            Files.writeString(file, table);
        }
        assertEquals(Files.readString(file), table.toString(), "sdk/java/API.md is stale");
    }
}
