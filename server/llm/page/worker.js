// The worker's API: its health, and an answer that comes piece by piece.

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

// Whether the server has Ollama's routes, of which one fetches models.
export async function mayPull(key) {
  try {
    return (await fetch("/api/version", {headers: withKey(key)})).ok;
  } catch {
    return false;
  }
}

// Lines of JSON.
async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    text += value ?? "";
    const whole = text.split("\n");
    text = done ? "" : whole.pop();
    yield* whole.filter(Boolean).map(line => JSON.parse(line));
    if (done) return;
  }
}

// Has the server fetch a model. Yields {status, total, completed}.
export async function* pull(model, key, signal) {
  const reply = await fetch("/api/pull", {method: "POST", signal, body: JSON.stringify({model}),
    headers: {"Content-Type": "application/json", ...withKey(key)}});
  if (!reply.ok) throw await refusal(reply);
  for await (const line of lines(reply.body)) {
    if (line.error) throw new Refused(200, line.error);
    yield line;
  }
}

// Payloads of the lines `data: ...` of a stream of events.
async function* payloads(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const event = text.slice(0, end);
      if (event.startsWith("data: ")) yield event.slice(6);
    }
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
  for await (const payload of payloads(reply.body)) {
    if (payload === "[DONE]") return yield end;
    const piece = JSON.parse(payload);
    if (piece.error) throw new Refused(200, piece.error.message);
    const choice = piece.choices?.[0];
    const delta = choice?.delta ?? {};
    if (delta.reasoning) yield {thought: delta.reasoning};
    if (delta.content) yield {text: delta.content};
    for (const call of delta.tool_calls ?? []) yield {call};
    end.reason = choice?.finish_reason ?? end.reason;
    end.usage = piece.usage ?? end.usage;
  }
  throw new Error("the connection broke off");
}
