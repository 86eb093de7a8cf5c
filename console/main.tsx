/** The entry point of the console. It continues a kept session and renders the page. */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import { render } from "preact";
import { App } from "./app.tsx";
import { keepSessions } from "./kept_session.ts";

keepSessions();
render(<App />, document.querySelector("#console")!);
