// How far `rbee serve` is with the models that it loads.

const inUnits = bytes => bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;

// By each name of a model: the name that lists have, the state of its best worker, and the progress
// of one that loads. Empty where this is one worker, or the key is missing.
export async function modelStates(key) {
  const headers = key ? {Authorization: "Bearer " + key} : {};
  const order = ["ready", "starting", "ending", "paused", "unloaded", "given_up"];
  try {
    const reply = await fetch("/workers", {headers});
    if (!reply.ok) return new Map();
    return new Map((await reply.json()).models.flatMap(({name, aliases = [], made = [], workers}) => {
      const [best = {}] = workers.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
      return [name, ...aliases, ...made].map(one => [one, {...best, name}]);
    }));
  } catch {
    return new Map();  // the request that waits says what is wrong
  }
}

function progressText({phase, done, total, seconds_left: left}) {
  const share = total > 0 ? `, ${inUnits(done)} of ${inUnits(total)}` : "";
  const time = left === undefined ? "" : `, ${Math.ceil(left)} s left`;
  return (phase === "fetching" ? "fetching the model" : "loading the model") + share + time;
}

// Tells of a model's load until the function that it returns is called: `tell` gets a text and a
// share of 1, or -1 if that is not known.
export function watchLoad(name, key, tell) {
  let over = false;
  const look = async () => {
    const {state, progress} = (await modelStates(key())).get(name) ?? {};
    if (over) return;
    if (state === "starting" && progress) tell(progressText(progress), progress.done / progress.total);
    else if (state === "starting") tell("loading the model", -1);
    setTimeout(look, 700);
  };
  const timer = setTimeout(look, 400);
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
