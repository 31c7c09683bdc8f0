// The worker's API: its health, and an answer that comes piece by piece.
import {events, lines} from "./events.js";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function refusal(reply) {
  const text = await reply.text();
  let message = text;
  try {
    const {error} = JSON.parse(text);
    message = error.message ?? error;  // Ollama's form has the text itself
  } catch { /* another form */ }
  return new Refused(reply.status, message || `the worker answered ${reply.status}`);
}

export async function health() {
  return (await fetch("/health", {headers: {Accept: "application/json"}})).json();
}

const withKey = key => key ? {Authorization: "Bearer " + key} : {};

// Has the server fetch a model. Yields {status, total, completed}.
export async function* pull(model, key, signal) {
  const reply = await fetch("/api/pull", {method: "POST", signal, body: JSON.stringify({model}),
    headers: {"Content-Type": "application/json", ...withKey(key)}});
  if (!reply.ok) throw await refusal(reply);
  for await (const line of lines(reply.body)) {
    if (!line) continue;
    const told = JSON.parse(line);
    if (told.error) throw new Refused(200, told.error);
    yield told;
  }
}

const fields = ["temperature", "max_tokens", "top_p", "top_k", "min_p", "repetition_penalty",
  "frequency_penalty", "presence_penalty", "repeat_last_n", "seed", "thinking_token_budget",
  "reasoning_effort", "typical_p", "top_n_sigma", "xtc_probability", "xtc_threshold",
  "dry_multiplier", "dry_base", "dry_allowed_length", "dynatemp_range", "mirostat", "mirostat_tau",
  "mirostat_eta", "min_tokens"];

// Where the settings say nothing, as the worker's own API has it: OpenAI's defaults cut nothing off,
// and small models drift away.
const usual = {temperature: 0.8, top_k: 40, top_p: 0.95};

// What the settings name as functions: JSON, a list in OpenAI's form; null for none.
export function toolsOf(settings) {
  if (!settings.tools?.trim()) return null;
  try {
    return JSON.parse(settings.tools);
  } catch {
    throw new Error("The tools in the settings are not JSON.");
  }
}

// Yields {text}, {thought} or {call} for each piece, then {reason, usage}. Throws Refused. Where the
// last message is the assistant's, the answer goes on with it.
export async function* complete(messages, settings, signal) {
  const body = {stream: true, stream_options: {include_usage: true}, messages: [...messages]};
  if (settings.model) body.model = settings.model;
  if (settings.system) body.messages.unshift({role: "system", content: settings.system});
  const tools = toolsOf(settings);
  if (tools) body.tools = tools;
  Object.assign(body, usual);
  for (const name of fields) if (settings[name] !== undefined) body[name] = settings[name];
  const stop = settings.stop?.split("\n").filter(Boolean);
  if (stop?.length) body.stop = stop;
  if (messages.at(-1)?.role === "assistant") {
    Object.assign(body, {continue_final_message: true, add_generation_prompt: false});
  }
  const headers = {"Content-Type": "application/json", ...withKey(settings.key)};
  const reply = await fetch("/v1/chat/completions",
    {method: "POST", headers, body: JSON.stringify(body), signal});
  if (!reply.ok) throw await refusal(reply);
  const end = {reason: null, usage: null};
  for await (const {data} of events(reply.body)) {
    if (data === "[DONE]") return yield end;
    const piece = JSON.parse(data);
    if (piece.error) throw new Refused(200, piece.error.message);
    const choice = piece.choices?.[0];
    const delta = choice?.delta ?? {};
    if (delta.reasoning) yield {thought: delta.reasoning};
    if (delta.content) yield {text: delta.content};
    for (const call of delta.tool_calls ?? []) yield {call};
    end.reason = choice?.finish_reason ?? end.reason;
    end.usage = piece.usage ?? end.usage;
  }
  // Some servers in between leave the mark of the end out.
  if (end.reason) return yield end;
  throw new Error("the connection broke off");
}
