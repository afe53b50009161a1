"""The official `openai` package against `qwen serve`: both endpoints, streamed or not."""

import json
import os
from pathlib import Path

import openai
import pytest

URL = os.environ["QWEN_SERVE_URL"]
TOKEN = os.environ["QWEN_SERVE_TOKEN"]
WORKSPACE = Path(os.environ["QWEN_SERVE_WORKSPACE"])

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture
def client():
    return openai.OpenAI(base_url=f"{URL}/v1", api_key=TOKEN, max_retries=0)


def ask(text):
    return [{"role": "user", "content": text}]


def test_models_are_the_agents(client):
    assert [model.id for model in client.models.list()] == ["qwen", "qwen-tot", "qwen-got"]
    assert client.models.retrieve("qwen").owned_by == "qwen"


def test_a_wrong_key_is_an_authentication_error():
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{URL}/v1", api_key="wrong", max_retries=0).models.list()


def test_an_unknown_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt", messages=ask("say hello"))


def test_bad_messages_are_a_bad_request(client):
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="qwen", messages=[])


class TestChatCompletions:
    def test_an_answer_with_the_usage_of_the_turn(self, client):
        answer = client.chat.completions.create(model="qwen", messages=ask("say hello"))
        assert answer.choices[0].message.content == "Hello from qwen."
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage.prompt_tokens == 11 and answer.usage.completion_tokens == 5

    def test_a_stream_with_usage(self, client):
        stream = client.chat.completions.create(
            model="qwen", messages=ask("say hello"), stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert chunks[0].choices[0].delta.role == "assistant"
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == "Hello from qwen."
        assert chunks[-1].usage.completion_tokens == 5 and chunks[-1].choices == []

    def test_a_repeated_history_continues_the_session(self, client):
        prompt = ask("say hello, only here")
        first = client.chat.completions.with_raw_response.create(model="qwen", messages=prompt)
        answer = first.parse().choices[0].message
        history = prompt + [answer.model_dump(), *ask("and again")]
        second = client.chat.completions.with_raw_response.create(model="qwen", messages=history)
        assert second.parse().choices[0].message.content == "Hello again."
        assert second.headers["x-qwen-session-id"] == first.headers["x-qwen-session-id"]

    def test_a_session_can_be_named(self, client):
        first = client.chat.completions.with_raw_response.create(model="qwen", messages=ask("say hello"))
        session = first.headers["x-qwen-session-id"]
        second = client.chat.completions.with_raw_response.create(
            model="qwen", messages=ask("and again"), extra_headers={"X-Qwen-Session-Id": session}
        )
        assert second.headers["x-qwen-session-id"] == session
        assert second.parse().choices[0].message.content == "Hello again."

    @pytest.mark.parametrize("streamed", [False, True])
    def test_the_callers_tools_come_back_as_tool_calls(self, client, streamed):
        tools = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
        messages = ask("what is the weather")
        if streamed:
            calls, text, finish = {}, "", None
            for chunk in client.chat.completions.create(model="qwen", messages=messages, tools=tools, stream=True):
                choice = chunk.choices[0]
                finish = choice.finish_reason or finish
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    known = calls.setdefault(call.index, {"id": call.id, "name": call.function.name, "arguments": ""})
                    known["arguments"] += call.function.arguments or ""
            assert finish == "tool_calls"
            call = calls[0]
            message = {
                "role": "assistant",
                "content": text,
                "tool_calls": [
                    {"id": call["id"], "type": "function", "function": {k: call[k] for k in ("name", "arguments")}}
                ],
            }
        else:
            answer = client.chat.completions.create(model="qwen", messages=messages, tools=tools)
            assert answer.choices[0].finish_reason == "tool_calls"
            message = answer.choices[0].message.model_dump(exclude_none=True)
            call = {"id": message["tool_calls"][0]["id"], **message["tool_calls"][0]["function"]}
        assert call["name"] == "get_weather" and json.loads(call["arguments"]) == {"city": "Paris"}
        messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]
        final = client.chat.completions.create(model="qwen", messages=messages, tools=tools)
        assert final.choices[0].message.content == "It is sunny."

    def test_the_agents_own_tools_run_unseen(self, client):
        answer = client.chat.completions.create(model="qwen", messages=ask("list the files"))
        assert answer.choices[0].message.content == "Looking.\n\nThat was all."

    def test_a_failed_turn_is_an_error(self, client):
        with pytest.raises(openai.APIStatusError, match="broken model"):
            client.chat.completions.create(model="qwen", messages=ask("fail please"))

    def test_closing_a_stream_cancels_its_turn(self, client):
        stream = client.chat.completions.create(model="qwen", messages=ask("write slowly"), stream=True)
        session = stream.response.headers["x-qwen-session-id"]
        next(stream)
        stream.close()
        for _ in range(3000):
            if api(client, f"/api/sessions/{session}")["status"] == "idle":
                return
        pytest.fail("the turn still runs")


def api(client, path):
    return json.loads(client.with_options(base_url=URL).get(path, cast_to=str))


def decide(client, request, decision):
    client.with_options(base_url=URL).post(f"/api/approvals/{request}", cast_to=str, body={"decision": decision})


class TestResponses:
    def test_a_text_in_and_out(self, client):
        response = client.responses.create(model="qwen", input="say hello")
        assert response.output_text == "Hello from qwen."
        assert response.status == "completed"
        assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 5)
        assert response.output[0].type == "message"

    def test_every_event_of_a_stream_is_known_and_in_order(self, client):
        events = list(client.responses.create(model="qwen", input="think first", stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        kinds = [event.type for event in events]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert kinds[-1] == "response.completed"
        assert "response.reasoning_summary_text.delta" in kinds
        final = events[-1].response
        assert final.output_text == "Thought about it."
        assert [item.type for item in final.output] == ["reasoning", "message"]

    def test_the_stream_helper_accumulates_the_response(self, client):
        with client.responses.stream(model="qwen", input="say hello") as stream:
            for _ in stream:
                pass
            assert stream.get_final_response().output_text == "Hello from qwen."

    def test_a_response_continues_another_and_a_second_one_forks(self, client):
        first = client.responses.create(model="qwen", input="say hello")
        second = client.responses.create(model="qwen", input="and again", previous_response_id=first.id)
        assert second.output_text == "Hello again." and second.previous_response_id == first.id
        fork = client.responses.create(model="qwen", input="other way", previous_response_id=first.id)
        assert fork.output_text == "The other way."

    def test_a_response_is_retrieved_and_deleted(self, client):
        response = client.responses.create(model="qwen", input="say hello")
        assert client.responses.retrieve(response.id).output_text == "Hello from qwen."
        client.responses.delete(response.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(response.id)

    def test_a_response_that_is_not_stored_cannot_be_retrieved(self, client):
        response = client.responses.create(model="qwen", input="say hello", store=False)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(response.id)

    def test_an_unknown_previous_response_is_not_found(self, client):
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model="qwen", input="x", previous_response_id="resp_" + "0" * 32)

    @pytest.mark.parametrize("repeats_history", [False, True])
    def test_functions_of_the_caller(self, client, repeats_history):
        tools = [{"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": False}]
        first = client.responses.create(model="qwen", input=ask("what is the weather"), tools=tools)
        call = next(item for item in first.output if item.type == "function_call")
        assert call.name == "get_weather" and json.loads(call.arguments) == {"city": "Paris"}
        assert next(item for item in first.output if item.type == "message").phase == "commentary"
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        if repeats_history:
            items = [*ask("what is the weather"), *[item.model_dump() for item in first.output], output]
            second = client.responses.create(model="qwen", input=items, tools=tools)
        else:
            second = client.responses.create(model="qwen", input=[output], previous_response_id=first.id, tools=tools)
        assert second.output_text == "It is sunny."

    def test_the_agents_tools_are_mcp_calls(self, client):
        response = client.responses.create(model="qwen", input="list the files")
        call = next(item for item in response.output if item.type == "mcp_call")
        assert (call.name, call.server_label, call.status) == ("list_directory", "qwen", "completed")
        assert json.loads(call.arguments) == {"path": "."}

    def test_open_responses_clients_get_items_with_our_prefix(self, client):
        response = client.responses.with_raw_response.create(
            model="qwen", input="list the files", extra_headers={"OpenResponses-Version": "2026-04-24"}
        )
        items = json.loads(response.text)["output"]
        assert [item["type"] for item in items] == ["message", "qwen:tool_call", "message"]
        assert all(item["id"] and item["status"] == "completed" for item in items)

    @pytest.mark.parametrize("approve", [True, False])
    def test_an_approval_is_requested_and_answered(self, client, approve):
        made = WORKSPACE / "made.txt"
        made.unlink(missing_ok=True)
        first = client.responses.create(model="qwen", input="make a file")
        request = next(item for item in first.output if item.type == "mcp_approval_request")
        assert json.loads(request.arguments)["command"] == "touch made.txt"
        answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
        second = client.responses.create(model="qwen", input=[answer], previous_response_id=first.id)
        call = next(item for item in second.output if item.type == "mcp_call")
        assert call.status == ("completed" if approve else "failed")
        assert second.output_text == "File handled."
        assert made.exists() == approve

    def test_what_is_not_supported_is_refused(self, client):
        for options in [{"background": True}, {"tools": [{"type": "web_search"}]}, {"conversation": "conv_1"}]:
            with pytest.raises(openai.BadRequestError, match="not supported"):
                client.responses.create(model="qwen", input="say hello", **options)


def test_the_example_of_the_documentation_runs(capsys):
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text()
    block = page.split("```python\n")[1].split("```")[0]
    exec(block.replace("http://127.0.0.1:4170", URL), {"token": TOKEN})
    assert capsys.readouterr().out == "Hello from qwen.\n"
