/** The parts of pages: the heading, the way back, cards, the page of one resource, the logo. */

import type { ComponentChildren, FunctionComponent } from "preact";
import { useId } from "preact/hooks";
import type { Call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { mayCreate } from "../data/permissions.ts";
import { href, hrefOfList, type Route } from "../data/route.ts";
import { itemName, sectionName, wordsOf } from "../data/titles.ts";
import { Reading } from "./notice.tsx";

/** A link to a list, with the filters and the page that it last had. */
export function Crumb({ section, label }: { section: string; label?: string }) {
  return (
    <p class="crumb">
      <a href={hrefOfList(section)}>{label ?? sectionName(section)}</a>
    </p>
  );
}

export function Title(props: {
  title: ComponentChildren;
  /** The section to which the page leads back. */
  crumb?: string;
  /** The status and the id of a resource. */
  under?: ComponentChildren;
  /** Whether the title is a long text, such as a URL. */
  is_long?: boolean;
  children?: ComponentChildren;
}) {
  const { title, crumb, under, is_long, children } = props;
  const heading = <h1 tabIndex={-1} class={is_long ? "url" : undefined}>{title}</h1>;
  if (under === undefined) {
    return (
      <div class="title">
        {crumb !== undefined && <Crumb section={crumb} />}
        {heading}
        {children}
      </div>
    );
  }
  return (
    <div class="title payment-title">
      <div>
        {heading}
        <p class="under-title">{under}</p>
      </div>
      {children}
    </div>
  );
}

/**
 * Returns the page of a resource. Until it is read, its heading is the name of its kind.
 * @param read describes the read of an id
 * @param View renders the resource
 */
export function resourcePage<T>(
  section: string,
  read: (id: string) => Call<T>,
  View: FunctionComponent<{ of: T; query: Route["query"] }>,
) {
  return function ResourcePage({ id, query }: { id: string; query: Route["query"] }) {
    const live = useLive(read(id), { logged: true });
    return (
      <>
        <Crumb section={section} />
        {live.data === null && <h1 tabIndex={-1}>{itemName(section)}</h1>}
        <Reading label={`this ${wordsOf(section).one}`} live={live} rows={5}>
          {(resource) => <View of={resource} query={query} />}
        </Reading>
      </>
    );
  };
}

/** A link to the page that makes an item of a section. Renders nothing if the key may not. */
export function NewLink(props: {
  section: string;
  query?: Record<string, string>;
  class?: string;
  onClick?: () => void;
  children: ComponentChildren;
}) {
  const { section, query, ...link } = props;
  return mayCreate(section) ? <a {...link} href={href([section, "new"], query)} /> : null;
}

/** A card. `actions` stand beside its heading. */
export function Card(props: {
  title: string;
  class?: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const id = useId();
  const heading = <h2 id={id}>{props.title}</h2>;
  return (
    <section class={`card ${props.class ?? ""}`} aria-labelledby={id}>
      {props.actions === undefined
        ? heading
        : <div class="card-title">{heading}{props.actions}</div>}
      {props.children}
    </section>
  );
}

/** The content of the page of a resource, and beside it the card with its facts. */
export function Columns(props: {
  details: ComponentChildren;
  /** The heading of the card. */
  title?: string;
  children: ComponentChildren;
}) {
  const { details, title = "Details", children } = props;
  return (
    <div class="columns">
      <div class="main-column">{children}</div>
      <Card title={title} class="side-column details">
        <dl class="facts">{details}</dl>
      </Card>
    </div>
  );
}

/** The symbol and the name of the product. */
export function Logo() {
  return (
    <span class="logo">
      <img src="icon.svg" alt="" width="24" height="24" />
      <span>Payments</span>
      <span class="mode">Sandbox</span>
    </span>
  );
}
