/** The entry point of the console. It continues a kept session and renders the page. */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import { render } from "preact";
import { App } from "./app.tsx";
import { watchChanges } from "./data/changes.ts";
import { shareWithNewTabs } from "./data/new_tab.ts";
import { keepScroll } from "./data/scroll.ts";
import { shareKey, storeSessions } from "./data/stored_session.ts";

storeSessions();
shareKey();
shareWithNewTabs();
keepScroll();
watchChanges();
render(<App />, document.querySelector("#console")!);
