import type { ChatCompletion, ChatCompletionChunk, ModelTokens, ToolCallDelta } from './generated.js';
import type { AgentMessage, ToolCall, TurnResult, WireEvent } from './messages.js';

type Completion = ChatCompletion | ChatCompletionChunk;

interface PartialCall {
  id: string;
  name: string;
  argumentsText: string;
}

/** Collects pieces of text. Joining them in blocks leaves the garbage collector little to follow. */
class TextBuffer {
  static readonly #BLOCK = 512;
  #joined = '';
  #pieces: string[] = [];

  add(piece: string): void {
    if (this.#pieces.push(piece) === TextBuffer.#BLOCK) this.#join();
  }

  toString(): string {
    if (this.#pieces.length > 0) this.#join();
    return this.#joined;
  }

  #join(): void {
    this.#joined += this.#pieces.join('');
    this.#pieces = [];
  }
}

/**
 * Turns the lines of one turn into messages and accumulates its text and calls. It reads both output formats: whole
 * messages (`stream-json`) and pieces (`stream-chunk-json`).
 */
export class TurnReader {
  #text = new TextBuffer();
  /** The text of the last message that had one; a turn that was stopped ends with an empty message. */
  #lastText = '';
  #hasMessage = false;
  #partialCalls: PartialCall[] = [];
  #calls: ToolCall[] = [];

  /** Emits the messages of a line. Returns the result when the line is the terminal record of the turn. */
  read(event: WireEvent, emit: (message: AgentMessage) => void): TurnResult | undefined {
    if ('choices' in event) return this.#completion(event, emit);
    const message = sideMessage(event);
    if (message !== undefined) emit(message);
    return undefined;
  }

  /** Takes a piece of text that was read without the rest of its line. @internal */
  readText(text: string): void {
    this.#hasMessage = true;
    this.#text.add(text);
  }

  #completion(event: Completion, emit: (message: AgentMessage) => void): TurnResult | undefined {
    const choice = event.choices[0];
    const metadata = event.metadata;
    const summary = metadata?.turn;
    if (choice !== undefined) {
      if ('delta' in choice) this.#delta(choice.delta, event, emit);
      else this.#message(choice.message, event, emit);
      const isBareError = metadata?.error != null && summary == null;
      if (choice.finish_reason != null && !isBareError) this.#end(choice.finish_reason, event, emit);
    }
    if (summary == null) {
      if (metadata?.error != null) emit({ type: 'error', error: metadata.error, raw: event });
      return undefined;
    }
    const result = this.#result(event, choice?.finish_reason ?? 'stop');
    emit({ type: 'result', result, raw: event });
    return result;
  }

  #delta(delta: ChatCompletionChunk['choices'][number]['delta'], raw: WireEvent, emit: (message: AgentMessage) => void): void {
    if (delta.role != null) this.#begin();
    const content = delta.content;
    if (content) {
      this.#hasMessage = true;
      this.#text.add(content);
      emit({ type: 'text', text: content, raw });
    }
    if (delta.tool_calls) for (const call of delta.tool_calls) this.#callDelta(call, raw, emit);
  }

  #callDelta(call: ToolCallDelta, raw: WireEvent, emit: (message: AgentMessage) => void): void {
    this.#hasMessage = true;
    const index = call.index;
    const text = call.function.arguments ?? '';
    let partial = this.#partialCalls[index];
    if (partial === undefined) {
      partial = { id: call.id ?? '', name: call.function.name ?? '', argumentsText: text };
      this.#partialCalls[index] = partial;
    } else {
      partial.argumentsText += text;
    }
    emit({ type: 'tool_call_delta', index, id: call.id ?? undefined, name: call.function.name ?? undefined, argumentsText: text, raw });
  }

  #message(message: ChatCompletion['choices'][number]['message'], raw: WireEvent, emit: (message: AgentMessage) => void): void {
    this.#begin();
    if (message.content) {
      this.#hasMessage = true;
      this.#text.add(message.content);
      emit({ type: 'text', text: message.content, raw });
    }
    for (const call of message.tool_calls ?? []) {
      this.#hasMessage = true;
      this.#partialCalls.push({ id: call.id, name: call.function.name, argumentsText: call.function.arguments });
    }
  }

  #begin(): void {
    this.#text = new TextBuffer();
    this.#hasMessage = false;
    this.#partialCalls = [];
  }

  #end(finishReason: string, event: Completion, emit: (message: AgentMessage) => void): void {
    if (!this.#hasMessage) return;
    this.#hasMessage = false;
    const said = this.#text.toString();
    if (said !== '') this.#lastText = said;
    const toolCalls = this.#partialCalls.filter((call) => call as PartialCall | undefined).map(toolCall);
    this.#partialCalls = [];
    this.#calls.push(...toolCalls);
    // The usage of a terminal record is that of the whole turn.
    const usage = event.metadata?.turn == null ? (event.usage ?? undefined) : undefined;
    emit({ type: 'assistant', text: said, toolCalls, finishReason, usage, model: event.model ?? '', raw: event });
  }

  #result(event: Completion, finishReason: string): TurnResult {
    const turn = event.metadata?.turn;
    const usageByModel = turn?.usage_by_model ?? {};
    const denials = turn?.permission_denials ?? [];
    const status = turn?.status ?? finishReason;
    const text = this.#text.toString() || this.#lastText;
    return {
      sessionId: event.session_id ?? '',
      promptId: event.prompt_id ?? '',
      status,
      done: status === 'done',
      ok: status === 'done' && denials.length === 0,
      isError: status !== 'done',
      text,
      summary: text,
      toolCalls: this.#calls,
      structuredOutput: turn?.structured_output ?? undefined,
      error: event.metadata?.error ?? undefined,
      usage: event.usage ?? undefined,
      usageByModel,
      usageByAgent: turn?.usage_by_agent ?? {},
      costUsd: cost(usageByModel),
      permissionDenials: denials,
      controlErrors: turn?.control_errors ?? event.metadata?.control_errors ?? [],
      durationMs: turn?.duration_ms ?? 0,
      modelCallCount: turn?.model_calls ?? 0,
      toolCallCount: turn?.tool_calls ?? 0,
      raw: event,
    };
  }
}

function toolCall(call: PartialCall): ToolCall {
  let parsed: unknown;
  try {
    parsed = JSON.parse(call.argumentsText);
  } catch {
    parsed = undefined;
  }
  const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
  return { ...call, arguments: isObject ? (parsed as Record<string, unknown>) : {} };
}

function cost(usage: Record<string, ModelTokens>): number | undefined {
  let total: number | undefined;
  for (const model of Object.values(usage)) {
    if (model.cost_usd == null) return undefined;
    total = (total ?? 0) + model.cost_usd;
  }
  return total;
}

/** The message of a line that is no completion; none for the control channel. */
export function sideMessage(event: Exclude<WireEvent, Completion>): AgentMessage | undefined {
  if (!('type' in event)) return { type: 'error', error: event.error, raw: event };
  switch (event.type) {
    case 'x-qwen-thought':
      return {
        type: 'thought',
        subject: event.subject,
        description: event.description,
        parentToolCallId: event.parent_tool_call_id ?? undefined,
        raw: event,
      };
    case 'x-qwen-tool-display':
      return {
        type: 'tool_status',
        toolCallId: event.tool_call_id,
        toolName: event.tool_name ?? undefined,
        status: event.status,
        display: event.result_display ?? undefined,
        confirmation: event.confirmation ?? undefined,
        parentToolCallId: event.parent_tool_call_id ?? undefined,
        raw: event,
      };
    case 'x-qwen-terminal':
      // The record that closes a turn's output carries no text; the result follows.
      if (event.source === 'system' && event.exit_code != null && !event.text) return undefined;
      return {
        type: 'terminal',
        channel: event.channel,
        source: event.source,
        text: event.text ?? '',
        toolCallId: event.tool_call_id ?? undefined,
        parentToolCallId: event.parent_tool_call_id ?? undefined,
        exitCode: event.exit_code ?? undefined,
        raw: event,
      };
    case 'x-qwen-session-event':
      return {
        type: 'session_event',
        event: event.event,
        message: event.message ?? '',
        metrics: event.metrics ?? undefined,
        value: event.value,
        raw: event,
      };
    case 'result/command':
      return { type: 'command', command: event.command, outcome: event.result, raw: event };
    case 'result/heartbeat':
      return { type: 'heartbeat', activity: event.activity ?? undefined, tool: event.tool ?? undefined, raw: event };
    case 'result/cancel':
      return { type: 'cancel', status: event.status, raw: event };
    case 'result/command_hint':
      return { type: 'hint', status: event.status, suggestions: event.suggestions, raw: event };
    case 'control_request':
    case 'control_response':
    case 'control_cancel_request':
      return undefined;
  }
}
