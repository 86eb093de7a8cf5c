-- Purpose: finds payments by what people type: whole values, such as an e-mail address or an amount,
-- and words (contract §5, decision 0004). What has no index of its own is found in pay.search_words
-- (search_words.sql).

-- The amounts that a text can be, with "." or "," before the decimals and with or without groups of
-- thousands and a currency: both readings of 1,234.
create or replace function pay_internal.sought_amounts(p_text text)
returns text[] language plpgsql immutable parallel safe as $$
declare
  v_number constant text := substring(p_text
    from '^(?:[A-Za-z]{3,4}|[€$£¥])?\s*([0-9][0-9., '']{0,19})\s*(?:[A-Za-z]{3,4}|[€$£¥])?$');
begin
  return array(
    select '#' || trim_scale(r.amount::numeric) from (values
      (replace(v_number, ',', '.'), '^[0-9]+([.,][0-9]{1,6})?$'),
      (regexp_replace(v_number, '[., '']', '', 'g'), '^[0-9]{1,3}([., ''])[0-9]{3}(\1[0-9]{3})*$'),
      (replace(regexp_replace(v_number, '[. '']', '', 'g'), ',', '.'),
        '^[0-9]{1,3}([. ''])[0-9]{3}(\1[0-9]{3})*,[0-9]{1,6}$'),
      (regexp_replace(v_number, '[, '']', '', 'g'),
        '^[0-9]{1,3}([, ''])[0-9]{3}(\1[0-9]{3})*[.][0-9]{1,6}$')
    ) r (amount, form)
    where btrim(v_number) ~ r.form);
end $$;

-- What a search looks for: {text, values, words, rarest}; null if the index knows nothing of it, and
-- a page reads the texts themselves. rarest: the word with the fewest payments; null if one of the
-- words has none.
create or replace function pay_internal.sought(p_environment_id text, p_text text)
returns jsonb language plpgsql stable as $$
declare
  v_text constant text := btrim(p_text);
  v_body constant text := substring(upper(regexp_replace(v_text, '[^A-Za-z0-9]', '', 'g'))
    from '^RF[0-9]{2}([0-9A-HJKMNP-TV-Z]{16})$');
  v_words constant bigint[] :=
    pay_internal.word_hashes(p_environment_id, pay_internal.text_words(v_text));
  v_rarest bigint;
  v_rows bigint;
  v_found jsonb;
  v_is_known boolean;
begin
  select w.word, c.rows into v_rarest, v_rows
  from unnest(v_words) w (word)
  cross join lateral (
    select count(*) as rows from (
      select from pay.search_words s
      where s.word = any (array[w.word]) and s.environment_id = p_environment_id
      order by s.word desc, s.payment_id desc limit pay_internal.page_rows() + 1
    ) few
  ) c
  order by c.rows limit 1;
  v_found := jsonb_build_object('text', v_text, 'words', v_words,
    'rarest', case when v_rows > 0 then v_rarest end,
    'values', pay_internal.word_hashes(p_environment_id,
      array_remove(array['=' || pay_internal.plain_text(v_text), '=' || lower(v_body)], null)
      || pay_internal.sought_amounts(v_text)));
  if v_rows > pay_internal.page_rows() then return v_found; end if;
  execute format('select exists (select from (%s) t where pay_internal.is_found($1, t.id,
      t.reference, t.customer_id, $2))', pay_internal.found_rows(v_found))
  into v_is_known using p_environment_id, v_found, '~', '';
  return case when v_is_known then v_found end;
end $$;

-- A query for the newest payments that can match, each by an index that has the order of the list. $1,
-- $3 and $4 as in pay_internal.list_query. Parts that end with the order of the index leave the
-- planner no other (decision 0004).
create or replace function pay_internal.found_rows(p_found jsonb)
returns text language plpgsql immutable as $$
declare
  v_part constant text := '(select t.%1$s as id from pay.%2$s t
    where t.%3$s = any (array[%4$s]) and t.%3$s is not null and t.environment_id = $1
      and t.%1$s < $3 and t.%1$s >= $4
    order by t.%3$s desc, %5$s t.%1$s desc limit pay_internal.page_rows())';
  v_parts text;
begin
  select string_agg(format(v_part, 'payment_id', 'search_words', 'word', w.word || '::bigint', ''),
    ' union all ')
  into v_parts
  from (
    select jsonb_array_elements_text(p_found -> 'values') as word
    union select p_found ->> 'rarest' where p_found ->> 'rarest' is not null
  ) w;
  select concat_ws(' union all ', v_parts, string_agg(format(v_part, 'id', 'payments', c.name,
    quote_literal(p_found ->> 'text'), 't.environment_id desc,'), ' union all '))
  into v_parts
  from unnest(array['id', 'reference', 'customer_id']) c (name);
  return format('select p.* from (
      select u.id from (%s) u group by u.id order by u.id desc limit pay_internal.page_rows()
    ) c
    cross join lateral (
      select p.* from pay.payments p where p.environment_id = $1 and p.id = c.id offset 0
    ) p', v_parts);
end $$;

-- Whether a payment has one of the values, or all of the words.
create or replace function pay_internal.is_found(
  p_environment_id text, p_id text, p_reference text, p_customer_id text, p_found jsonb
) returns boolean language plpgsql stable as $$
declare
  v_values constant bigint[] :=
    array(select jsonb_array_elements_text(p_found -> 'values')::bigint);
  v_words constant bigint[] := array(select jsonb_array_elements_text(p_found -> 'words')::bigint);
begin
  return p_found ->> 'text' in (p_id, p_reference, p_customer_id)
    or (select count(*) filter (where w.word = any (v_values)) > 0
        or count(*) filter (where w.word = any (v_words)) = nullif(cardinality(v_words), 0)
      from pay.search_words w
      where w.environment_id = p_environment_id and w.payment_id = p_id
        and w.word = any (v_values || v_words)) is true;
end $$;
