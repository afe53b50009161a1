// A recorded session in one file: the page's view of it, with a slider.
import { Replay } from '/page/replay.js';
import { Transcript } from '/page/transcript.js';

const part = (id) => document.getElementById(id);
const shown = new Transcript(part('transcript'), { plan: part('plan'), agents: part('agents'), thoughts: part('thoughts'), usage: part('usage') });
new Replay(part('recording'), shown).open(JSON.parse(part('lines').textContent));
