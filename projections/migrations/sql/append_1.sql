-- Appends one batch: log, streams, payloads and tool_call_attempts in one statement, one round trip.
--
-- Parallel arrays: p_* has one element per append (a_* among them are columns of tool_call_attempts), e_* one per event
-- in order, d_* one per payload. An append without p_statuses begins a stream; any other is guarded by the row it finds.
-- No subtransactions: a refused append has touched no row. Waits for rows happen in a total order (rows by number, then
-- new streams, then payloads, each by name), so that two batches cannot deadlock.
CREATE FUNCTION calljournal_append_1(
    p_all boolean, p_tenant text[], p_key text[], p_expected integer[], p_first integer[], p_count integer[],
    p_statuses text[], p_phases text[], p_not_late boolean[], p_idempotent boolean[], p_dead_worker text[],
    p_check_repeat boolean[],
    a_call_id text[], a_message_id text[], a_run_id text[], a_tool_id text[], a_tool_name text[], a_action_name text[],
    a_arguments text[], a_digest text[], a_status text[], a_gate text[], a_pause_type text[], a_rule text[],
    a_expires_at timestamptz[], a_result_status text[], a_result text[], a_error text[], a_artifact_id text[],
    a_worker text[], a_headless boolean[], a_conversation_id text[], a_agent_id text[], a_llm_name text[],
    a_effect text[], a_idempotent boolean[], a_fingerprint text[], a_late boolean[], a_traceparent text[],
    e_append integer[], e_version integer[], e_id text[], e_type text[], e_schema_version integer[], e_data text[],
    d_append integer[], d_digest text[], d_length bigint[], d_content text[],
    OUT o_at timestamptz,
    OUT o_positions bigint[],          -- one per event; null where its append was refused
    OUT o_lost integer[],              -- the refused appends, and what was found instead
    OUT o_version integer[], OUT o_status text[], OUT o_gate text[], OUT o_pause_type text[], OUT o_late boolean[],
    OUT o_lease_alive boolean[],
    OUT o_known integer[],             -- events of refused appends that their stream has already
    OUT o_known_position bigint[], OUT o_known_at timestamptz[])
LANGUAGE plpgsql VOLATILE
-- One plan for all batch sizes and statistics: every table is reached by its key.
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_variable
DECLARE
    v_total integer := cardinality(p_key);
    v_stream bigint[];                 -- by append: its stream; null: refused
    v_new integer[];                   -- the appends that begin a stream
    v_made bigint[];
    v_taken integer := 0;
    v_row record;
    v_append integer;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    o_at := clock_timestamp();
    v_stream := array_fill(NULL::bigint, ARRAY[v_total]);

    -- 1. Which appends begin a stream, and which of the others hold: lock and judge the rows that are there. The guard's
    -- words are parameters: a literal status would be planned through the partial index of open calls.
    IF array_position(p_statuses, NULL) IS NOT NULL THEN
        SELECT array_agg(n ORDER BY p_tenant[n] COLLATE "C", p_key[n] COLLATE "C") INTO v_new
          FROM generate_series(1, v_total) AS n
         WHERE p_statuses[n] IS NULL AND p_expected[n] = 0 AND p_dead_worker[n] IS NULL
           AND NOT EXISTS (SELECT FROM tool_call_streams s WHERE s.tenant = p_tenant[n] AND s.key = p_key[n]);
    END IF;
    v_taken := coalesce(cardinality(v_new), 0);
    IF v_taken < v_total THEN
        FOR v_row IN
            SELECT n, t.stream
              FROM generate_series(1, v_total) AS n
              JOIN tool_call_streams s ON s.tenant = p_tenant[n] AND s.key = p_key[n]
              JOIN tool_call_attempts t ON t.stream = s.stream
             WHERE p_statuses[n] IS NOT NULL
               AND p_expected[n] > 0
               AND t.version = p_expected[n]
               AND t.status = ANY (string_to_array(p_statuses[n], ' '))
               AND (p_phases[n] IS NULL
                    OR t.gate || coalesce(':' || t.pause_type, '') = ANY (string_to_array(p_phases[n], ' ')))
               AND NOT (p_not_late[n] AND t.late)
               AND (t.idempotent OR NOT p_idempotent[n])
               AND NOT EXISTS (SELECT FROM worker_leases l WHERE l.worker = p_dead_worker[n] AND l.expires_at > o_at)
               AND NOT (p_check_repeat[n] AND EXISTS (
                    SELECT FROM tool_call_events e WHERE e.stream = t.stream AND e.id = e_id[p_first[n]]))
             ORDER BY t.stream
               FOR UPDATE OF t
        LOOP
            v_stream[v_row.n] := v_row.stream;
            v_taken := v_taken + 1;
        END LOOP;
    END IF;

    IF v_taken > 0 AND NOT (p_all AND v_taken < v_total) THEN
        -- 2. The fence: after the locks, before the first number. Readers go no further than the lowest fence.
        PERFORM pg_advisory_xact_lock_shared(
            (x'434A'::bigint << 48) | (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM tool_call_position));
        IF v_taken = v_total THEN
            SELECT array_agg(nextval('tool_call_position')) INTO o_positions
              FROM generate_series(1, cardinality(e_append));
        ELSE
            SELECT array_agg(CASE WHEN v_stream[a] IS NOT NULL OR a = ANY (v_new) THEN nextval('tool_call_position') END)
              INTO o_positions FROM unnest(e_append) AS a;
        END IF;

        -- 3. New streams: the primary key decides who began it. A stream's number is its first event's position.
        IF v_new IS NOT NULL THEN
            WITH made AS (
                INSERT INTO tool_call_streams (tenant, key, stream)
                SELECT p_tenant[n], p_key[n], o_positions[p_first[n]] FROM unnest(v_new) AS n
                ON CONFLICT DO NOTHING RETURNING stream
            ) SELECT array_agg(made.stream) INTO v_made FROM made;
            IF coalesce(cardinality(v_made), 0) < cardinality(v_new) THEN
                IF p_all THEN
                    RAISE EXCEPTION 'another append began one of the streams' USING ERRCODE = 'CJ001';
                END IF;
                SELECT array_agg(n) INTO v_new FROM unnest(v_new) AS n WHERE o_positions[p_first[n]] = ANY (v_made);
                SELECT array_agg(CASE WHEN v_stream[e_append[j]] IS NOT NULL OR e_append[j] = ANY (v_new)
                                      THEN o_positions[j] END)
                  INTO o_positions FROM generate_subscripts(e_append, 1) AS j;
            END IF;
            INSERT INTO tool_call_attempts (
                stream, tenant, key, call_id, message_id, run_id, tool_id, tool_name, action_name, arguments, digest,
                status, gate, pause_type, rule, expires_at, result_status, result, error, artifact_id, worker, headless,
                conversation_id, agent_id, llm_name, effect, idempotent, fingerprint, late, traceparent,
                proposed_at, updated_at, version, position)
            SELECT o_positions[p_first[n]], p_tenant[n], p_key[n], a_call_id[n], a_message_id[n], a_run_id[n],
                   a_tool_id[n], a_tool_name[n], a_action_name[n], a_arguments[n], a_digest[n], a_status[n], a_gate[n],
                   a_pause_type[n], a_rule[n], a_expires_at[n], a_result_status[n], a_result[n], a_error[n],
                   a_artifact_id[n], a_worker[n], a_headless[n], a_conversation_id[n], a_agent_id[n], a_llm_name[n],
                   a_effect[n], a_idempotent[n], a_fingerprint[n], coalesce(a_late[n], false), a_traceparent[n],
                   o_at, o_at, p_count[n], o_positions[p_first[n] + p_count[n] - 1]
              FROM unnest(v_new) AS n;
        END IF;

        -- 4. The rows that move along: null keeps, but a new gate sets what goes with it, and late is only ever set.
        IF v_taken > coalesce(cardinality(v_made), 0) THEN
            UPDATE tool_call_attempts t
               SET status = coalesce(a_status[n], t.status),
                   gate = coalesce(a_gate[n], t.gate),
                   pause_type = CASE WHEN a_gate[n] IS NULL THEN t.pause_type ELSE a_pause_type[n] END,
                   expires_at = CASE WHEN a_gate[n] IS NULL THEN t.expires_at ELSE a_expires_at[n] END,
                   rule = coalesce(a_rule[n], t.rule),
                   result_status = coalesce(a_result_status[n], t.result_status),
                   result = coalesce(a_result[n], t.result),
                   error = coalesce(a_error[n], t.error),
                   artifact_id = coalesce(a_artifact_id[n], t.artifact_id),
                   arguments = coalesce(a_arguments[n], t.arguments),
                   worker = coalesce(a_worker[n], t.worker),
                   fingerprint = coalesce(a_fingerprint[n], t.fingerprint),
                   late = t.late OR coalesce(a_late[n], false),
                   updated_at = o_at,
                   version = p_expected[n] + p_count[n],
                   position = o_positions[p_first[n] + p_count[n] - 1]
              FROM generate_series(1, v_total) AS n
             WHERE t.stream = v_stream[n];
        END IF;

        -- 5. Payloads and events of what was accepted.
        FOREACH v_append IN ARRAY coalesce(v_new, '{}') LOOP
            v_stream[v_append] := o_positions[p_first[v_append]];
        END LOOP;
        IF d_append IS NOT NULL THEN
            INSERT INTO tool_call_payloads (tenant, digest, length, content)
            SELECT p_tenant[d_append[k]], d_digest[k], d_length[k], d_content[k]
              FROM generate_subscripts(d_append, 1) AS k
             WHERE v_stream[d_append[k]] IS NOT NULL
             ORDER BY p_tenant[d_append[k]] COLLATE "C", d_digest[k] COLLATE "C"
            ON CONFLICT DO NOTHING;
        END IF;
        INSERT INTO tool_call_events (
            position, stream, version, tenant, key, id, type, schema_version, recorded_at, data)
        SELECT o_positions[j], v_stream[e_append[j]], e_version[j], p_tenant[e_append[j]], p_key[e_append[j]],
               e_id[j], e_type[j], e_schema_version[j], o_at, e_data[j]
          FROM generate_subscripts(e_append, 1) AS j
         WHERE o_positions[j] IS NOT NULL;
    ELSE
        -- Nothing is written, but what would have been accepted is not among the lost.
        FOREACH v_append IN ARRAY coalesce(v_new, '{}') LOOP
            v_stream[v_append] := 0;
        END LOOP;
    END IF;

    -- 6. What the refused ones found. The same event ids in the stream: a resend, not a rival.
    IF array_position(v_stream, NULL) IS NOT NULL THEN
        SELECT array_agg(n), array_agg(t.version), array_agg(t.status), array_agg(t.gate), array_agg(t.pause_type),
               array_agg(t.late), array_agg(EXISTS (
                    SELECT FROM worker_leases l WHERE l.worker = p_dead_worker[n] AND l.expires_at > o_at))
          INTO o_lost, o_version, o_status, o_gate, o_pause_type, o_late, o_lease_alive
          FROM generate_series(1, v_total) AS n
          LEFT JOIN tool_call_streams s ON s.tenant = p_tenant[n] AND s.key = p_key[n]
          LEFT JOIN tool_call_attempts t ON t.stream = s.stream
         WHERE v_stream[n] IS NULL;
        SELECT array_agg(j), array_agg(e.position), array_agg(e.recorded_at)
          INTO o_known, o_known_position, o_known_at
          FROM generate_subscripts(e_append, 1) AS j
          JOIN tool_call_streams s ON s.tenant = p_tenant[e_append[j]] AND s.key = p_key[e_append[j]]
          JOIN tool_call_events e ON e.stream = s.stream AND e.id = e_id[j]
         WHERE v_stream[e_append[j]] IS NULL;
    END IF;
END $$
