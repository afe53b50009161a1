import io.github.qwenagent.AgentManager
import io.github.qwenagent.AgentOptions
import io.github.qwenagent.Decision
import io.github.qwenagent.Message
import io.github.qwenagent.Result
import io.github.qwenagent.Tool
import io.github.qwenagent.ToolServer

@JvmRecord
data class Add(val x: Int, val y: Int)

@JvmRecord
data class Capital(val city: String)

/** A turn with a tool of this program, and a typed result. */
fun main() {
    val calculator = ToolServer.of("calc", Tool.of("add", "Adds two numbers", Add::class.java) { it.x + it.y })
    val options = AgentOptions.builder()
        .tools(calculator)
        .canUseTool { if (it.toolName().startsWith("mcp__calc__")) Decision.allow() else Decision.deny("Not here.") }
        .build()
    AgentManager.open(options).use { agents ->
        agents.createSession().use { session ->
            session.stream("What is 2 + 3?").use { turn ->
                for (message in turn) {
                    when (message) {
                        is Message.Text -> print(message.text())
                        is Result -> println("\n${message.status()}")
                        else -> Unit
                    }
                }
            }
            println(session.run("The capital of France?", Capital::class.java).output().city)
        }
    }
}
