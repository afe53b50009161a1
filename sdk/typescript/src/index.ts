export { createAgentManager } from './manager.js';
export type { AgentManager, RunOptions } from './manager.js';
export { query } from './query.js';
export type { QueryOptions } from './query.js';
export type { ReplayOptions } from './replay.js';
export type { Session, SteerOutcome } from './session.js';
export type { Turn } from './turn.js';
export type {
  AgentDefinition,
  AgentManagerOptions,
  HeartbeatOptions,
  Limits,
  McpServerConfig,
  OnCrash,
  SessionOptions,
  SettingSource,
  SettingsProfile,
  Timeouts,
  TurnOptions,
  WorkerPoolOptions,
} from './options.js';
export type { Prompt, PromptInput, PromptPart } from './prompt.js';
export { defineTools, tool } from './control/tools.js';
export type { Tool, ToolContent, ToolContext, ToolDefinition, ToolResult, ToolServer } from './control/tools.js';
export type { McpInstanceTransport, McpServerInstance } from './control/mcp.js';
export type { InferSchema, JsonSchema, SchemaInput, SchemaShape, StandardSchema, ZodLike } from './control/schema.js';
export type {
  CallbackContext,
  PermissionBehavior,
  PermissionDecision,
  PermissionHandler,
  PermissionMode,
  PermissionRequest,
} from './control/permissions.js';
export { HOOK_EVENTS } from './control/hooks.js';
export type { HookEvent, HookEventName, HookHandler, HookMatcher, HookResult, HookTable } from './control/hooks.js';
export {
  AbortError,
  BinaryNotFoundError,
  ClosedError,
  ProtocolError,
  QwenError,
  RequestError,
  StructuredOutputError,
  TimeoutError,
  ToolError,
  WorkerExitedError,
} from './errors.js';
export type { WorkerExit } from './errors.js';
export { enableVerboseLogging } from './logging.js';
export type { Logger } from './logging.js';
export type { SessionStore } from './store.js';
export { ProcessTransport } from './transport/process.js';
export type { LaunchPlan, Transport, TransportFactory, TransportReceiver } from './transport/transport.js';
export { PROTOCOL_VERSION } from './worker/connection.js';
export type { Handshake } from './worker/connection.js';
export { parseLine } from './wire/parse.js';
export { TurnReader } from './wire/reader.js';
export type {
  AgentMessage,
  AgentStreamChunk,
  AssistantMessageEnd,
  CancelMessage,
  CommandMessage,
  ErrorMessage,
  HeartbeatMessage,
  HintMessage,
  ResultMessage,
  SessionEventMessage,
  TerminalMessage,
  TextMessage,
  ThoughtMessage,
  ToolCall,
  ToolCallDeltaMessage,
  ToolStatusMessage,
  TurnResult,
  TurnStatus,
  UnknownEvent,
  WireEvent,
} from './wire/messages.js';
export type * as wire from './wire/generated.js';
