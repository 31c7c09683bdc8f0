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
  try { message = JSON.parse(text).error.message; } catch { /* not the worker's own form */ }
  return new Refused(reply.status, message || `the worker answered ${reply.status}`);
}

export async function health() {
  return (await fetch("/health", {headers: {Accept: "application/json"}})).json();
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
  "frequency_penalty", "presence_penalty", "seed", "thinking_token_budget", "reasoning_effort"];

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

// Yields {text}, {thought} or {call} for each piece, then {reason, usage}. Throws Refused.
export async function* complete(messages, settings, signal) {
  const body = {stream: true, stream_options: {include_usage: true}, messages: [...messages]};
  if (settings.model) body.model = settings.model;
  if (settings.system) body.messages.unshift({role: "system", content: settings.system});
  const tools = toolsOf(settings);
  if (tools) body.tools = tools;
  Object.assign(body, usual);
  for (const name of fields) if (settings[name] !== undefined) body[name] = settings[name];
  const headers = {"Content-Type": "application/json"};
  if (settings.key) headers.Authorization = "Bearer " + settings.key;
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
