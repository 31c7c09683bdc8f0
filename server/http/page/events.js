// Lines and events of a stream, however its bytes are cut into chunks.

// Lines that end with CR LF, LF or CR; the last may have no end.
export async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let open = "", returned = false;  // the line that has not ended; whether a CR was the last letter
  for (;;) {
    const {value, done} = await reader.read();
    if (done) break;
    if (!value) continue;
    const text = returned && value.startsWith("\n") ? value.slice(1) : value;
    returned = value.endsWith("\r");
    const parts = text.split(/\r\n|\r|\n/);
    parts[0] = open + parts[0];
    open = parts.pop();
    yield* parts;
  }
  if (open) yield open;
}

// Yields {event, data} of each event of a text/event-stream that has data. One that the stream ends
// in is cut off, and not among them.
export async function* events(stream) {
  let event = "message", data = [];
  for await (const line of lines(stream)) {
    const [, name, value] = /^([^:]*):? ?([^]*)$/.exec(line);
    if (line === "") {
      if (data.length) yield {event, data: data.join("\n")};
      [event, data] = ["message", []];
    } else if (name === "event") {
      event = value;
    } else if (name === "data") {
      data.push(value);
    }
  }
}
